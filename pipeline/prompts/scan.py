"""Code that no fence marks: from a line that starts code, as far as it is Python."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from kernelquarry.pipeline.schema.parse_python import parse

from .fences import START

_PARSED = 4_000_000  # characters, of all attempts together
_SHORTENED = 8  # times that the end of a piece is looked for
_ITEM = re.compile(r"\s*(?:[-*•]|\d+[.)])\s+\S")


def parsed(code: str) -> ast.Module | None:
    """None if it is no Python."""
    try:
        return parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def pieces_of_code(text: str) -> Iterator[str]:
    """All that is Python, one piece after the other, whatever stands between them and however far it is indented.

    A piece ends before the first line that does not go on with it; a statement that breaks off is no part of it.
    """
    lines, at, left = text.split("\n"), 0, _PARSED
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
    """The lines from `start` on that have this indentation, without it."""
    if not indent:
        return lines[start:]
    found = []
    for line in lines[start:]:
        if line.strip() and not line.startswith(indent):
            break
        found.append(line[len(indent) :])
    return found


def _longest(lines: list[str]) -> list[str]:
    """The lines up to the last whole statement before the first that is no Python; none if there is no such."""
    for _ in range(_SHORTENED):
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
    """Without the statement that the wrong line is in, if it is one."""
    wrong = min(wrong, len(lines) - 1)
    if not _ITEM.match(lines[wrong]):
        while wrong > 0 and (not lines[wrong].strip() or lines[wrong][0] in " \t"):
            wrong -= 1
    return lines[:wrong]


def _end(tree: ast.Module) -> int:
    """The last line that is code, and not prose that is Python by chance."""
    body = list(tree.body)
    while body and (is_idle(body[-1]) or (isinstance(body[-1], ast.AnnAssign) and body[-1].value is None)):
        body.pop()
    if all(isinstance(node, ast.Expr) for node in body):
        return 0  # a text in quotes, that may have the code in it
    return body[-1].end_lineno or 0


def is_idle(node: ast.stmt) -> bool:
    """Whether it does nothing: a word alone, the line of a shell."""
    return isinstance(node, ast.Expr) and not isinstance(node.value, (ast.Call, ast.Constant))
