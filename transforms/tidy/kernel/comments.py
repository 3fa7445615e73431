"""Comments that say which expression of the reference the lines below them compute; none where that is not known.

A statement keeps the line of Inductor's kernel that it comes from, also inside of the expressions that others absorbed;
`sources` reads what the lines come from.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence

_LONGEST = 90  # characters of a comment


def comment(expressions: Iterable[str]) -> str:
    """One line for these, without those that are parts of others; "" if there is nothing to say."""
    whole = [one for one in dict.fromkeys(expressions) if not one.isidentifier()]
    whole = [one for one in whole if not any(one != other and one in other for other in whole)]
    fitting = list(whole)
    while fitting and len("; ".join(fitting)) > _LONGEST:
        del fitting[0]
    if not fitting:
        return ""
    return f"# {'' if fitting == whole else '...; '}{'; '.join(fitting)}"


class Commented:
    """The statements of a kernel with comments, in order. `sources`: line of Inductor's kernel -> expression."""

    def __init__(self, sources: Mapping[int, str]) -> None:
        self._sources = sources
        self._last: frozenset[str] = frozenset()
        self._said = ""  # the last comment

    def body(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        result = self._told(statements)
        if not self._last:  # nothing is computed, what is copied has a source nevertheless
            self._last = frozenset(self._sources.values())
            if len(self._last) == 1:
                first = next(n for n, s in enumerate(result) if _is_load(s) or isinstance(s, ast.Expr))
                result[first:first] = _lines(self._last)
        return result

    def _told(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        result: list[ast.stmt] = []
        for statement in statements:
            if isinstance(statement, ast.For):
                inner = self._told(statement.body)
                statement = ast.For(statement.target, statement.iter, inner, [], lineno=0)
            elif not _is_load(statement):
                lines = sorted({getattr(node, "lineno", 0) for node in ast.walk(statement)} & self._sources.keys())
                found = list(dict.fromkeys(self._sources[line] for line in lines))
                if not self._last.issuperset(found):
                    self._last = frozenset(found)
                    if (text := comment(found)) != self._said:
                        self._said = text
                        result += _lines(found)
            result.append(statement)
        return result


def _lines(expressions: Iterable[str]) -> list[ast.stmt]:
    text = comment(expressions)
    return [ast.Expr(ast.Constant(text))] if text else []


def _is_load(statement: ast.stmt) -> bool:
    match statement:
        case ast.Assign(value=ast.Call(func=function)):
            return ast.unparse(function) == "tl.load"
    return False
