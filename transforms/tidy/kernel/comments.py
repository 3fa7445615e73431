"""Comments in a kernel, and its docstring: operators, and shapes of tensors where these are known.

A comment is the expression of the reference that the lines below compute, where it is known. It is an expression
statement of a string, which `print_code` prints as a comment. A statement keeps the line number of Inductor's kernel
that it comes from, and so do expressions inlined into it.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterable, Mapping, Sequence

from ..syntax.ast_tools import called, with_body
from ..syntax.print_code import LINE

_LONGEST = 90  # characters of a comment
_INDENT = 4 * " "
_UNBROKEN = "\N{NO-BREAK SPACE}"  # stands for a space at which no line may break


def comment(expressions: Iterable[str]) -> str:
    """One comment for the expressions, without those that are parts of others; "" if none is left."""
    whole = [one for one in dict.fromkeys(expressions) if not one.isidentifier()]
    whole = [one for one in whole if not any(one != other and one in other for other in whole)]
    fitting = list(whole)
    while fitting and len("; ".join(fitting)) > _LONGEST:
        del fitting[0]
    if not fitting:
        return ""
    return f"# {'' if fitting == whole else '...; '}{'; '.join(fitting)}"


class Commenter:
    """Adds comments to the statements of one kernel; `sources` maps lines of Inductor's kernel to expressions."""

    def __init__(self, sources: Mapping[int, str]) -> None:
        self._sources = sources
        self._last: frozenset[str] = frozenset()  # expressions of the statement before
        self._written = ""  # the last comment

    def body(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        """The statements with comments. A kernel that only copies gets the comment of its copy."""
        result = self._commented(statements)
        sources = frozenset(self._sources.values())
        if not self._last and len(sources) == 1:
            first = next(n for n, s in enumerate(result) if _is_load(s) or isinstance(s, ast.Expr))
            result[first:first] = _lines(sources)
        return result

    def _commented(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        result: list[ast.stmt] = []
        for statement in statements:
            if isinstance(statement, ast.For):
                statement = with_body(statement, self._commented(statement.body))
            elif not _is_load(statement):
                lines = sorted({getattr(node, "lineno", 0) for node in ast.walk(statement)} & self._sources.keys())
                found = list(dict.fromkeys(self._sources[line] for line in lines))
                if not self._last.issuperset(found):
                    self._last = frozenset(found)
                    if (text := comment(found)) != self._written:
                        self._written = text
                        result += _lines(found)
            result.append(statement)
        return result


def _lines(expressions: Iterable[str]) -> list[ast.stmt]:
    text = comment(expressions)
    return [ast.Expr(ast.Constant(text))] if text else []


def _is_load(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign) and called(statement.value) == "tl.load"


def kernel_docstring(operators: str, read: Mapping[str, str], written: Mapping[str, str]) -> str:
    """`add: x (batch, 8), y (8,) -> out (batch, 8)`; if that is too long, the shapes are a paragraph of their own.

    `read` and `written` map names of tensors to their shapes.
    """
    inputs, results = (", ".join(f"{name} {shape}" for name, shape in each.items()) for each in (read, written))
    shapes = f"{inputs} -> {results}".strip() if results else inputs
    line = f"{operators}: {shapes}" if shapes else operators
    if len(f'{_INDENT}"""{line}"""') <= LINE:
        return line
    unbroken = shapes.replace(" ", _UNBROKEN).replace(f"),{_UNBROKEN}", "), ").replace(f"){_UNBROKEN}->", ") ->")
    paragraph = textwrap.wrap(unbroken, LINE - len(_INDENT), break_long_words=False, break_on_hyphens=False)
    lines = [operators, "", *(_INDENT + text.replace(_UNBROKEN, " ") for text in paragraph), _INDENT]
    return "\n".join(lines)
