"""The source of a module, and the positions of Python's instructions in it."""

from __future__ import annotations

import ast
import sys
from itertools import islice
from pathlib import Path
from types import CodeType
from typing import TypeAlias

from torch import nn

Place: TypeAlias = tuple[int, ...]  # first and last line, first and last column


def source_of(module: nn.Module) -> tuple[str, ast.Module]:
    """The file of the module's class and its syntax tree; "" and an empty tree if the class has no file."""
    file = getattr(sys.modules.get(type(module).__module__), "__file__", None) or ""
    return file, ast.parse(Path(file).read_text(encoding="utf-8") if file.endswith(".py") else "")


def places(code: CodeType, instruction: int) -> list[Place]:
    """The positions of all instructions up to this one; zeros for an instruction without a position."""
    positions = islice(code.co_positions(), instruction // 2 + 1)
    return [(first or 0, last or 0, column or 0, end or 0) for first, last, column, end in positions]


def is_inside(place: Place, node: ast.AST) -> bool:
    (first, last, column, end), whole = place, span(node)
    return (whole[0], whole[2]) <= (first, column) and (last, end) <= (whole[1], whole[3])


def span(node: ast.AST) -> Place:
    """The position of a statement or an expression."""
    return tuple(getattr(node, name, 0) for name in ("lineno", "end_lineno", "col_offset", "end_col_offset"))
