"""Finds code outside fences: from a line that starts code to the last line that is valid Python."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from kernelquarry.pipeline.schema.parse_python import parse

from .fences import START

_MOST_PARSED = 4_000_000  # characters over all attempts
_MOST_CUTS = 8  # attempts to find the end of a piece
_ITEM = re.compile(r"\s*(?:[-*•]|\d+[.)])\s+\S")


def parsed(code: str) -> ast.Module | None:
    """The syntax tree; None if the code is not valid Python."""
    try:
        return parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def pieces_of_code(text: str) -> Iterator[str]:
    """Every piece of Python in the text, at any indentation. A piece ends before the first line that is not Python."""
    lines, at, left = text.split("\n"), 0, _MOST_PARSED
    while at < len(lines) and left > 0:
        indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
        if not START.match(lines[at], len(indent)):
            at += 1
            continue
        piece = _indented_by(indent, lines, at)
        left -= sum(map(len, piece)) + 1000
        code = _longest(piece)
        if code:
            yield "\n".join(code) + "\n"
        at += max(1, len(code))


def _indented_by(indent: str, lines: list[str], start: int) -> list[str]:
    """The lines from `start` on that have this indentation, with the indentation removed."""
    if not indent:
        return lines[start:]
    found = []
    for line in lines[start:]:
        if line.strip() and not line.startswith(indent):
            break
        found.append(line[len(indent) :])
    return found


def _longest(lines: list[str]) -> list[str]:
    """The longest prefix of complete statements."""
    for _ in range(_MOST_CUTS):
        try:
            tree = parse("\n".join(lines))
        except SyntaxError as error:
            lines = _before(lines, (error.lineno or 1) - 1)
        except (ValueError, RecursionError, MemoryError):
            return []
        else:
            return lines[: _end(tree)]
    return []


def _before(lines: list[str], wrong: int) -> list[str]:
    """The lines before the statement that contains the line `wrong`."""
    wrong = min(wrong, len(lines) - 1)
    if not _ITEM.match(lines[wrong]):
        while wrong > 0 and (not lines[wrong].strip() or lines[wrong][0] in " \t"):
            wrong -= 1
    return lines[:wrong]


def _end(tree: ast.Module) -> int:
    """The last line of code, without trailing prose that happens to be valid Python."""
    body = list(tree.body)
    while body and (is_idle(body[-1]) or (isinstance(body[-1], ast.AnnAssign) and body[-1].value is None)):
        body.pop()
    if all(isinstance(node, ast.Expr) for node in body):
        return 0  # only strings, which may contain the code
    return body[-1].end_lineno or 0


def is_idle(node: ast.stmt) -> bool:
    """True if the statement has no effect: a single word, or a shell command."""
    return isinstance(node, ast.Expr) and not isinstance(node.value, (ast.Call, ast.Constant))
