"""Code of a file that its class `ModelNew` does not use: programs, tests, copies of the module."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from kernelquarry.pipeline.schema.parse_python import parse, parse_expression
from kernelquarry.pipeline.schema.records import CANDIDATE_ENTRY_POINT

from .equivalent import in_language
from .idle import Statements, bound
from .parsed_source import Source, parsed

_GAP = 2  # blank lines between the definitions of a file


@dataclass(frozen=True, slots=True)
class Used:
    """A text without what its entry point does not use."""

    code: str  # blank lines stand for what was left out, so that lines keep their numbers
    removed: tuple[str, ...] = ()  # names of what was left out


def without_unused(code: str, arguments: str = "", entry: str = CANDIDATE_ENTRY_POINT) -> Used:
    """Leave out what the definition `entry` does not use, if it does nothing when the file is imported.

    These are programs (`if __name__ == "__main__"`), definitions that do nothing on import (`idle`), and
    imports of listed modules. Other statements are rewritten (`equivalent`). A text that does not parse, or does not
    define `entry`, stays as it is.

    Args:
        arguments: source of the constructor's arguments, which may name functions of the file.
    """
    rewritten = in_language(code)
    code = rewritten.code
    try:
        source = parsed(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Used(code)
    body = source.tree.body
    if not any(entry in bound(node) for node in body):
        return Used(code)
    others = [node for node in body if entry not in bound(node)]
    statements = Statements(source)
    idle = [node for node in others if statements.is_idle(node) and not _is_decoy(source, node)]
    roots = [node for node in body if node not in idle]
    roots += [ast.Expr(parse_expression(arguments))] if arguments else []
    used = reach(roots, idle)
    removed = [node for node in idle if node not in used and _has_own_lines(body, node)]
    lines = code.splitlines(keepends=True)
    for node in removed:
        lines[_first_line(node) - 1 : node.end_lineno] = ["\n"] * len(_lines(node))
    defined = [node for node in removed if not isinstance(node, ast.Import | ast.ImportFrom)]
    return Used("".join(lines), (*rewritten.removed, *(name for node in defined for name in sorted(bound(node)))))


def close_gaps(code: str) -> str:
    """The text with at most two blank lines between the statements of the file."""
    lines = code.splitlines(keepends=True)
    within = {line for node in parse(code).body for line in _lines(node)}
    blank = 0
    kept: list[str] = []
    for number, line in enumerate(lines, 1):
        blank = blank + 1 if not line.strip() and number not in within else 0
        if blank <= _GAP and (kept or not blank):
            kept.append(line)
    return "".join(kept).rstrip() + "\n"


def reach(roots: Sequence[ast.stmt], others: Sequence[ast.stmt]) -> set[ast.AST]:
    """The roots, and the statements of the others that they use by the names that these bind."""
    found, waiting = set[ast.AST](), [*roots]
    while waiting:
        node = waiting.pop()
        found.add(node)
        waiting += [each for each in others if each not in found and _names(node) & bound(each)]
    return found


def _names(node: ast.stmt) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _is_decoy(source: Source, node: ast.stmt) -> bool:
    """True for a kernel that nothing names: such a text is rejected."""
    if not isinstance(node, ast.FunctionDef) or node.name not in source.kernels:
        return False
    return not any(node.name in _names(each) for each in source.tree.body if each is not node)


def _first_line(node: ast.stmt) -> int:
    return min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])


def _lines(node: ast.stmt) -> range:
    assert node.end_lineno is not None  # of parsed code
    return range(_first_line(node), node.end_lineno + 1)


def _has_own_lines(body: list[ast.stmt], node: ast.stmt) -> bool:
    """False for a statement that shares a line with another."""
    ours = _lines(node)
    return not any(each is not node and {*ours} & {each.lineno, each.end_lineno} for each in body)
