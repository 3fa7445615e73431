"""Launches, allocations and sizes in a candidate's forward."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .roles import dotted
from .source_edits import Source

_ALLOCATIONS = ("torch.empty", "torch.empty_strided", "torch.zeros", "torch.full", "torch.empty_like")


@dataclass(frozen=True, slots=True)
class Launch:
    """A statement `kernel[grid](...)`."""

    statement: ast.Expr
    call: ast.Call
    grid: ast.expr

    @property
    def arguments(self) -> list[ast.expr]:
        return [*self.call.args, *(keyword.value for keyword in self.call.keywords)]


def launches(source: Source) -> list[Launch]:
    """Launches in forward, in order."""
    names = {kernel.function.name for kernel in source.kernels}
    found = []
    for statement in _statements(source):
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Subscript(value=ast.Name(id=name), slice=grid)) as call):
                if name in names:
                    found.append(Launch(statement, call, grid))
    return found


def allocations(source: Source) -> list[tuple[str, ast.Call]]:
    """Calls in forward that allocate a tensor, with the name that each is assigned to."""
    found = []
    for statement in _statements(source):
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call):
                if dotted(call.func) in _ALLOCATIONS:
                    found.append((name, call))
    return found


def grids(source: Source) -> Iterator[ast.Tuple]:
    """Tuples that are grids: written in a launch, or assigned to a name that a launch uses."""
    names = {launch.grid.id for launch in launches(source) if isinstance(launch.grid, ast.Name)}
    for launch in launches(source):
        if isinstance(launch.grid, ast.Tuple):
            yield launch.grid
    for statement in _statements(source):
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Tuple() as grid) if name in names:
                yield grid


def _statements(source: Source) -> list[ast.stmt]:
    return sorted((n for n in source.forward_nodes if isinstance(n, ast.stmt)), key=lambda n: (n.lineno, n.col_offset))


def is_literal(node: ast.expr) -> bool:
    """True if the expression has no variable."""
    return not any(isinstance(part, ast.Name) and part.id not in ("triton", "max", "min") for part in ast.walk(node))


class Sizes:
    """Values of integer expressions in forward, and shapes of its tensors, on the first workload."""

    def __init__(self, source: Source) -> None:
        self._shapes = dict(source.shapes)
        self._numbers: dict[str, int] = {}
        for statement in _statements(source):
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self._assign(name, value)
                case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                    for target, value in zip(targets, values, strict=False):
                        if isinstance(target, ast.Name):
                            self._assign(target.id, value)
                case ast.Assign(targets=[ast.Tuple(elts=targets)], value=value):
                    for target, size in zip(targets, self.shape(value) or (), strict=False):
                        if isinstance(target, ast.Name):
                            self._numbers[target.id] = size

    def _assign(self, name: str, value: ast.expr) -> None:
        """Record the value or the shape of a name; forget both if `value` is not understood."""
        number, shape = self.number(value), self.shape(value)
        self._numbers.pop(name, None)
        if number is not None:
            self._numbers[name] = number
        match value:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr="contiguous")) if owner in self._shapes:
                self._shapes[name] = self._shapes[owner]
            case ast.Call(args=[dimensions, *_]) if dotted(value.func) in _ALLOCATIONS and shape is None:
                self._remember(name, dimensions)
            case _:
                self._shapes.pop(name, None)

    def _remember(self, name: str, dimensions: ast.expr) -> None:
        sizes = [self.number(part) for part in dimensions.elts] if isinstance(dimensions, ast.Tuple) else [None]
        known = tuple(size for size in sizes if size is not None)
        self._shapes.pop(name, None)
        if len(known) == len(sizes):
            self._shapes[name] = known

    def shape(self, node: ast.expr) -> tuple[int, ...] | None:
        """The shape that `x.shape` or `x.size()` returns; None for other expressions."""
        match node:
            case ast.Attribute(value=ast.Name(id=owner), attr="shape"):
                return self._shapes.get(owner)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr="size"), args=[]):
                return self._shapes.get(owner)
        return None

    def shape_of(self, name: str) -> tuple[int, ...] | None:
        return self._shapes.get(name)

    def number(self, node: ast.expr) -> int | None:
        """The value of an integer expression that follows from the shapes; None for other expressions."""
        match node:
            case ast.Constant(value=bool()):
                return None
            case ast.Constant(value=int(value)):
                return value
            case ast.Name(id=name):
                return self._numbers.get(name)
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                number = self.number(inner)
                return None if number is None else -number
            case ast.Subscript(value=owner, slice=index):
                return _item(self.shape(owner), self.number(index))
            case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr="size"), args=[index]):
                return _item(self._shapes.get(owner), self.number(index))
            case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr="numel"), args=[]):
                return math.prod(self._shapes[owner]) if owner in self._shapes else None
            case ast.BinOp(left=left, op=operator, right=right):
                return _compute(type(operator).__name__, self.number(left), self.number(right))
            case ast.Call(func=function, args=[left, right]):
                return _compute(dotted(function), self.number(left), self.number(right))
        return None


def _item(shape: tuple[int, ...] | None, index: int | None) -> int | None:
    return shape[index] if shape is not None and index is not None and -len(shape) <= index < len(shape) else None


_FUNCTIONS: Mapping[str, Any] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mult": lambda a, b: a * b,
    "FloorDiv": lambda a, b: a // b if b else None,
    "Mod": lambda a, b: a % b if b else None,
    "triton.cdiv": lambda a, b: -(-a // b) if b else None,
    "max": max,
    "min": min,
}


def _compute(function: str, left: int | None, right: int | None) -> int | None:
    if left is None or right is None or function not in _FUNCTIONS:
        return None
    result = _FUNCTIONS[function](left, right)
    return result if isinstance(result, int) else None
