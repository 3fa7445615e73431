"""Numeric constants that only the candidate's source or only the reference's contains, or compares with.

At these sizes and values the two may differ, by mistake or on purpose, so trials and further checks draw them. They
also draw the fractions with which the reference compares: a value on such a boundary is on one side of it.
"""

from __future__ import annotations

import ast
import functools
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping

from kernelquarry.filters.language.idle import is_text
from kernelquarry.filters.language.parsed_source import last_name, parsed
from kernelquarry.pipeline.schema.parse_python import parse

_LIMITING = frozenset("clamp max maximum min minimum range".split())  # functions that compare their arguments
_DECIDING = frozenset("ge gt hardshrink le lt threshold".split())  # functions that jump at an argument
_MIN_INTEGER = 8  # other draws cover smaller integers, and other calls cover smaller sizes
_BROADCAST = 2  # sizes of 1, and their doubles
_LEAST_BLOCK = 128  # of a kernel that combines what all programs of another one gave
_LARGEST, _SMALLEST = 1e12, 1e-12  # values beyond overflow in honest formulas, or are guards against overflow
_FOLDED: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: math.pow,
    ast.LShift: lambda left, right: left * 2.0**right,
}


@functools.lru_cache(maxsize=64)
def code_alone(text: str) -> str:
    """The text without comments and docstrings; as it is if it does not parse."""
    try:
        tree = parse(text)
        for node in ast.walk(tree):
            if isinstance(body := getattr(node, "body", None), list):
                body[:] = [each for each in body if not is_text(each)] or [ast.Pass()]
        return ast.unparse(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text


class SourceConstants:
    """The constants: first those in comparisons, then the others by decreasing size, the candidate's first.

    There are none if a source does not parse.
    """

    def __init__(self, code: str, reference: str) -> None:
        try:
            every, compared, deciding = zip(*map(_constants, (code, reference)), strict=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            every, compared, deciding = ({}, {}), ({}, {}), ({}, {})
        known = every[0].keys() & every[1].keys()
        self._compared = [n for n in compared[0] | compared[1] if n not in known]
        self._compared_by_one = [n for n in compared[0] | compared[1] if (n in compared[0]) != (n in compared[1])]
        self._boundaries = [n for n in deciding[1] if n != int(n)]
        others = [n for numbers in every for n in sorted(numbers, key=abs, reverse=True)]
        self._others = [n for n in dict.fromkeys(others) if n not in known and n not in self._compared]

    @property
    def values(self) -> tuple[float, ...]:
        """Constants that elements of inputs may be compared with or padded by."""
        every = dict.fromkeys((*self._compared_by_one, *self._others, *self._boundaries))
        in_range = [n for n in every if _SMALLEST <= abs(n) <= _LARGEST]
        return tuple(n for n in in_range if n != int(n) or abs(n) >= _MIN_INTEGER)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Constants that may be the size of a dimension, or a bound for it."""
        others = (int(n) for n in self._others if n == int(n) and n >= _MIN_INTEGER)
        return tuple(dict.fromkeys((*self.limits, *others)))

    @property
    def few(self) -> tuple[int, ...]:
        """Constants that a size may be compared with, of those below `_MIN_INTEGER` that are not broadcast."""
        return tuple(int(n) for n in self._compared if n == int(n) and _BROADCAST < n < _MIN_INTEGER)

    @property
    def limits(self) -> tuple[int, ...]:
        """Constants that a size may be compared with, and one more."""
        near = [other for n in self._compared for other in (n, n + 1)]
        return tuple(dict.fromkeys(int(n) for n in near if n == int(n) and n >= _MIN_INTEGER))


def extents(code: str) -> tuple[int, ...]:
    """Numbers of elements that fixed loops, grids, or a second kernel's block may cover, the largest first.

    They are products of a length with an integer of the source, such as a block; of several kernels, each integer is a
    length, too.
    """
    numbers = integers(code)
    nodes = list(ast.walk(parse(code))) if numbers else []
    calls = [node for node in nodes if isinstance(node, ast.Call) and len(node.args) in (1, 2)]
    loops = {*_fixed(call.args[-1] for call in calls if last_name(call.func) in ("range", "static_range"))}
    grids = {*_fixed(node.slice for node in nodes if isinstance(node, ast.Subscript))}
    counts = loops | grids | {loop * grid for loop in loops for grid in grids}
    if numbers and len(parsed(code).launched) > 1:
        counts |= {n for n in numbers if n >= _LEAST_BLOCK}
    return tuple(sorted({count * n for count in counts for n in numbers}, reverse=True))


def _fixed(nodes: Iterable[ast.expr]) -> Iterator[int]:
    """The lengths, from `_MIN_INTEGER` on, that are constants, or a tuple's of constants."""
    for node in nodes:
        values = [constant_value(each) for each in (node.elts if isinstance(node, ast.Tuple) else [node])]
        whole = [int(n) for n in values if n is not None and n == int(n)]
        if whole and len(whole) == len(values) and math.prod(whole) >= _MIN_INTEGER:
            yield math.prod(whole)


def integers(code: str) -> tuple[int, ...]:
    """The integers of a source that may bound a size, in order. There are none if it does not parse."""
    try:
        numbers, *_ = _constants(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    return tuple(sorted({int(n) for n in numbers if n == int(n) and _MIN_INTEGER <= n <= _LARGEST}))


@functools.lru_cache(maxsize=8)
def _constants(text: str) -> tuple[dict[float, None], ...]:
    """The constants of a source, those in its comparisons and limits, and those in comparisons alone."""
    tree = parse(text)
    deciding = dict.fromkeys(_compared(tree, _DECIDING))
    return dict.fromkeys(_numbers(tree)), dict.fromkeys(_compared(tree, _LIMITING)), deciding


def _compared(tree: ast.AST, functions: frozenset[str]) -> Iterator[float]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) or (isinstance(node, ast.Call) and last_name(node.func) in functions):
            yield from _numbers(node)


def _numbers(node: ast.AST) -> Iterator[float]:
    """Constants in `node`; a constant expression counts as one number: -6 for `-2 * 3`."""
    value = constant_value(node)
    if value is not None:
        yield value
        return
    for child in ast.iter_child_nodes(node):
        yield from _numbers(child)


def constant_value(node: ast.AST) -> float | None:
    """Value of a number or a constant expression; None for other nodes, and if it is not finite."""
    try:
        match node:
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                value: float | None = float(number)
            case ast.Call(func=ast.Name(id="float" | "int"), args=[ast.Constant(value=str() as text)], keywords=[]):
                value = float(text)
            case ast.UnaryOp(op=ast.USub(), operand=operand) if (positive := constant_value(operand)) is not None:
                value = -positive
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _FOLDED:
                first, second = constant_value(left), constant_value(right)
                value = None if first is None or second is None else _FOLDED[type(op)](first, second)
            case _:
                return None
    except (ArithmeticError, ValueError):  # overflow, division by zero, or a root of a negative number
        return None
    return value if value is not None and math.isfinite(value) else None
