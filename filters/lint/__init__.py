"""A linter that finds candidates whose kernels do not do the work, by their source alone, without running them.

The verifier lints a model's candidate that the language (`filters/language`) holds. Transforms and recipes may import
this package.
"""

from __future__ import annotations

import ast
from collections.abc import Collection

from .finding import Finding, Rule
from .host_code import HostCode
from .parsed_source import Source
from .torch_names import same_operator
from .work import find_torch_work

__all__ = ["Finding", "Rule", "launched_kernels", "lint", "same_operator"]


def lint(code: str, extern_ops: Collection[str] = ()) -> tuple[Finding, ...]:
    """All findings in `code`, by line.

    Args:
        extern_ops: operators of PyTorch that a mixed candidate declares.
    """
    source = _parse(code)
    if isinstance(source, Finding):
        return (source,)
    return tuple(sorted(_finding(*each) for each in find_torch_work(source, extern_ops)))


def launched_kernels(code: str) -> tuple[str, ...]:
    """Names of the kernels that the host code launches; () if the source does not parse."""
    source = _parse(code)
    return () if isinstance(source, Finding) else tuple(sorted(HostCode(source).launched))


def _finding(node: ast.AST, rule: Rule, what: str) -> Finding:
    return Finding(getattr(node, "lineno", 0), what, rule.value)


def _parse(code: str) -> Source | Finding:
    try:
        source = Source(code)
        _name_self(source)
        return source
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = error.lineno or 0 if isinstance(error, SyntaxError) else 0
        return Finding(line, f"does not parse: {error}", Rule.UNPARSABLE.value)


def _name_self(source: Source) -> None:
    """Call the first argument of each method `self`, as the rules do."""
    methods = [member for node in source.nodes if isinstance(node, ast.ClassDef) for member in node.body]
    for method in methods:
        if not isinstance(method, ast.FunctionDef) or {"classmethod", "staticmethod"} & _decorators(method):
            continue
        first = next((each.arg for each in (*method.args.posonlyargs, *method.args.args)), "self")
        inner = list(ast.walk(method))
        if any(isinstance(each, ast.Name) and each.id == "self" for each in inner):
            continue
        for each in inner:
            if isinstance(each, ast.Name) and each.id == first:
                each.id = "self"
            elif isinstance(each, ast.arg) and each.arg == first:
                each.arg = "self"


def _decorators(node: ast.FunctionDef) -> set[str]:
    return {each.id for each in node.decorator_list if isinstance(each, ast.Name)}
