"""A linter for candidates: what their source alone shows to be no honest kernel. Nothing is run.

The same rules triage a model's answers before they are verified, explain a reward, and are part of the verdict: there,
rules that `hide` reject a model's candidate, however well its outputs compare.
"""

from __future__ import annotations

import ast
from collections.abc import Collection

from .finding import Finding, Rule
from .host_code import Host
from .parsed_source import Source
from .reach import reaches
from .torch_names import same_operator
from .work import works

__all__ = ["Finding", "Rule", "forbidden", "launched_kernels", "lint", "same_operator"]


def lint(code: str, extern_ops: Collection[str] = ()) -> tuple[Finding, ...]:
    """All findings in `code`, by line. `extern_ops` are the operators that a mixed candidate says it uses."""
    source = _parse(code)
    if isinstance(source, Finding):
        return (source,)
    found = (*reaches(source), *works(source, extern_ops))
    return tuple(sorted(_finding(source, *each) for each in found))


def forbidden(code: str, arguments: str = "") -> str:
    """The first thing in `code` that could hide how it computes, with its line, or in the text of the constructor's
    `arguments`, which is evaluated beside it; "" if there is none."""
    source = _parse(code, arguments)
    if isinstance(source, Finding):
        return source.what
    found = sorted(_finding(source, *each) for each in reaches(source))
    return str(found[0]) if found else ""


def launched_kernels(code: str) -> tuple[str, ...]:
    """Names of the kernels that the Python around them launches, () if the source does not parse."""
    source = _parse(code)
    return () if isinstance(source, Finding) else tuple(sorted(Host(source).launched))


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
