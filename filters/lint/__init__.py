"""A linter that finds dishonest candidates by their source alone, without running them.

Distillation and rewards lint a model's answer before verification. The verifier rejects a model's candidate that
breaks a rule with `hides`, even if its outputs are right. Transforms and recipes may import this package.
"""

from __future__ import annotations

import ast
from collections.abc import Collection

from .finding import Finding, Rule
from .host_code import HostCode
from .parsed_source import Source
from .reach import find_forbidden
from .torch_names import same_operator
from .work import find_torch_work

__all__ = ["Finding", "Rule", "forbidden", "launched_kernels", "lint", "same_operator"]


def lint(code: str, extern_ops: Collection[str] = ()) -> tuple[Finding, ...]:
    """All findings in `code`, by line.

    Args:
        extern_ops: operators of PyTorch that a mixed candidate declares.
    """
    source = _parse(code)
    if isinstance(source, Finding):
        return (source,)
    found = (*find_forbidden(source), *find_torch_work(source, extern_ops))
    return tuple(sorted(_finding(source, *each) for each in found))


def forbidden(code: str, arguments: str = "") -> str:
    """The first finding in `code` that could deceive the checks, with its line; "" if there is none.

    Args:
        arguments: source of the constructor's arguments, which is checked too, as it is evaluated with `code`.
    """
    source = _parse(code, arguments)
    if isinstance(source, Finding):
        return source.what
    found = sorted(_finding(source, *each) for each in find_forbidden(source))
    return str(found[0]) if found else ""


def launched_kernels(code: str) -> tuple[str, ...]:
    """Names of the kernels that the host code launches; () if the source does not parse."""
    source = _parse(code)
    return () if isinstance(source, Finding) else tuple(sorted(HostCode(source).launched))


def _finding(source: Source, node: ast.AST, rule: Rule, what: str) -> Finding:
    if node in source.arguments:
        return Finding(0, f"the constructor's arguments: {what}", rule.value)
    return Finding(getattr(node, "lineno", 0), what, rule.value)


def _parse(code: str, arguments: str = "") -> Source | Finding:
    try:
        return Source(code, arguments)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = error.lineno or 0 if isinstance(error, SyntaxError) else 0
        return Finding(line, f"does not parse: {error}", Rule.UNPARSABLE.value)
