"""Numbers that a candidate's text names and its reference's does not, or the other way round: sizes and values at which
it may be another function, by a slip or on purpose."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator, Mapping

from kernelquarry.pipeline.schema.parse_python import parse

_SEVERAL = 8  # whole numbers below are in other draws, and sizes below in other calls
_LARGEST, _SMALLEST = 1e12, 1e-12  # values beyond overflow in honest formulas, or are what keeps these from it
_FOLDED: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: math.pow,
    ast.LShift: lambda left, right: left * 2.0**right,
}


class SourceConstants:
    """The numbers, likeliest first: those that something is compared with, then the others from the largest on, the
    candidate's before the reference's. None if a text does not parse."""

    def __init__(self, code: str, reference: str) -> None:
        try:
            trees = [parse(text) for text in (code, reference)]
            every = [dict.fromkeys(_numbers(tree)) for tree in trees]
            compared = [dict.fromkeys(_compared(tree)) for tree in trees]
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            every, compared = [{}, {}], [{}, {}]
        known = every[0].keys() & every[1].keys()
        self._compared = [n for n in compared[0] | compared[1] if n not in known]
        others = [n for named in every for n in sorted(named, key=abs, reverse=True)]
        self._others = [n for n in dict.fromkeys(others) if n not in known and n not in self._compared]

    @property
    def values(self) -> tuple[float, ...]:
        """What elements of inputs may be compared with, or padded by."""
        found = [n for n in (*self._compared, *self._others) if _SMALLEST <= abs(n) <= _LARGEST]
        return tuple(n for n in found if n != int(n) or abs(n) >= _SEVERAL)

    @property
    def sizes(self) -> tuple[int, ...]:
        """What a dimension may be, or may be above."""
        near = [other for n in self._compared for other in (n, n + 1)]
        return tuple(dict.fromkeys(int(n) for n in (*near, *self._others) if n == int(n) and n >= _SEVERAL))


def _compared(tree: ast.AST) -> Iterator[float]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            yield from _numbers(node)


def _numbers(node: ast.AST) -> Iterator[float]:
    """Those that a text names in `node`; of `-2 * 3` the -6 alone."""
    value = _value(node)
    if value is not None:
        yield value
        return
    for child in ast.iter_child_nodes(node):
        yield from _numbers(child)


def _value(node: ast.AST) -> float | None:
    """Of a number, and of what is computed from numbers alone; None of all else, and of what is not finite."""
    try:
        match node:
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                value: float | None = float(number)
            case ast.UnaryOp(op=ast.USub(), operand=operand) if (positive := _value(operand)) is not None:
                value = -positive
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _FOLDED:
                first, second = _value(left), _value(right)
                value = None if first is None or second is None else _FOLDED[type(op)](first, second)
            case _:
                return None
    except (ArithmeticError, ValueError):  # too large, divided by 0, a root of what is negative
        return None
    return value if value is not None and math.isfinite(value) else None
