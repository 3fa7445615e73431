"""Edits of a source text at the places of its syntax tree."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

_LAST = 1 << 30  # order of replacements, behind what is inserted at their start


class Edits:
    """Insertions and replacements in a text. A replacement contains no other edit."""

    def __init__(self, code: str) -> None:
        self._lines = [line.encode() for line in code.splitlines(keepends=True)]
        self._starts = [0, *accumulate(map(len, self._lines))]
        self._edits: list[tuple[int, int, int, str]] = []  # start, order, end, text

    def start(self, node: ast.stmt | ast.expr) -> int:
        """Offset of a node in bytes, its decorators included."""
        first = min([node, *getattr(node, "decorator_list", ())], key=lambda each: (each.lineno, each.col_offset))
        at = self._starts[first.lineno - 1] + first.col_offset
        if first is not node:  # the @ before a decorator
            line = self._lines[first.lineno - 1]
            at = self._starts[first.lineno - 1] + len(line) - len(line.lstrip())
        return at

    def end(self, node: ast.stmt | ast.expr) -> int:
        assert node.end_lineno is not None and node.end_col_offset is not None  # of parsed code
        return self._starts[node.end_lineno - 1] + node.end_col_offset

    def indentation(self, node: ast.stmt) -> str:
        """White space before the line of a statement."""
        line = self._lines[node.lineno - 1].decode()
        return line[: len(line) - len(line.lstrip())]

    def begins_with(self, node: ast.stmt, text: str) -> bool:
        """True if the text at a statement begins so; an `elif` is an `if` in the tree."""
        return self._lines[node.lineno - 1][node.col_offset :].startswith(text.encode())

    def replace(self, nodes: Sequence[ast.stmt | ast.expr], text: str) -> None:
        """Replace the text from the first node to the last."""
        self._edits.append((self.start(nodes[0]), _LAST, self.end(nodes[-1]), text))

    def wrap(self, node: ast.expr, before: str, after: str) -> None:
        """Insert texts around an expression. Outer expressions are wrapped before inner ones."""
        depth = len(self._edits)
        self._edits.append((self.start(node), depth + 1, self.start(node), before))
        self._edits.append((self.end(node), -depth - 1, self.end(node), after))

    def append(self, node: ast.stmt, text: str) -> None:
        """Insert a text behind a statement. What ends there too and is inside of it comes before."""
        self._edits.append((self.end(node), len(self._edits) + 1, self.end(node), text))

    def insert_line(self, node: ast.stmt, text: str) -> None:
        """Insert lines before a statement at the top of the file."""
        self._edits.append((self.start(node), -1, self.start(node), text))

    def remove_lines(self, node: ast.stmt) -> None:
        """Remove the lines of a statement at the top of a file or of a class, and blank lines behind it."""
        assert node.end_lineno is not None
        first, end = bisect_right(self._starts, self.start(node)) - 1, node.end_lineno
        while end < len(self._lines) and not self._lines[end].strip():
            end += 1
        self._edits.append((self._starts[first], _LAST, self._starts[end], ""))

    def apply(self) -> str:
        """The text after all edits."""
        parts, at = [], 0
        text = b"".join(self._lines)
        for start, _, end, inserted in sorted(self._edits):
            parts += [text[at:start], inserted.encode()]
            at = end
        return b"".join([*parts, text[at:]]).decode()
