"""Mutations that hard-code sizes of the first workload, and mutations of launches."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .host_side import Sizes, allocations, grids, is_literal, launches
from .operator import Fault, source_operator
from .roles import dotted
from .source_edits import Edit, Source


def _as_number(source: Source, nodes: Iterator[ast.expr]) -> Iterator[Edit]:
    """Replace expressions that depend on shapes by their value on the first workload."""
    sizes = Sizes(source)
    for node in nodes:
        number = sizes.number(node)
        if number is not None and not is_literal(node):
            yield source.replace(node, str(number))


@source_operator(Fault.SHAPES, "a size of the first workload")
def size_fixed(source: Source) -> Iterator[Edit]:
    yield from _as_number(source, (node for node in source.forward_nodes if isinstance(node, ast.Subscript)))


@source_operator(Fault.SHAPES, "a grid of the first workload")
def grid_fixed(source: Source) -> Iterator[Edit]:
    yield from _as_number(source, (part for grid in grids(source) for part in grid.elts))


@source_operator(Fault.SHAPES, "an argument of the first workload")
def argument_fixed(source: Source) -> Iterator[Edit]:
    yield from _as_number(source, (part for launch in launches(source) for part in launch.arguments))


@source_operator(Fault.SHAPES, "a tensor of the first workload's size")
def memory_fixed(source: Source) -> Iterator[Edit]:
    shapes = (call.args[0] for _, call in allocations(source) if call.args)
    yield from _as_number(source, (part for shape in shapes if isinstance(shape, ast.Tuple) for part in shape.elts))


@source_operator(Fault.LAUNCH, "a program too few")
def grid_short(source: Source) -> Iterator[Edit]:
    """Launch one program less along an axis with several, or leave out an incomplete last block."""
    for node in source.forward_nodes:
        if isinstance(node, ast.Call) and dotted(node.func) == "triton.cdiv":
            yield source.replace(node, f"max(1, {source.text(node)} - 1)")
            if len(node.args) == 2:
                size, block = node.args
                yield source.replace(node, f"max(1, {source.grouped(size)} // {source.grouped(block)})")


@source_operator(Fault.LAUNCH, "the grid's axes swapped")
def grid_axes(source: Source) -> Iterator[Edit]:
    for grid in grids(source):
        for index in range(len(grid.elts) - 1):
            parts = [source.text(part) for part in grid.elts]
            parts[index], parts[index + 1] = parts[index + 1], parts[index]
            yield source.replace(grid, f"({', '.join(parts)})")


@source_operator(Fault.LAUNCH, "two arguments swapped")
def argument_order(source: Source) -> Iterator[Edit]:
    """Swap neighbouring arguments of the same kind: two tensors, or two numbers."""
    sizes = Sizes(source)
    tensors = {name for name, _ in allocations(source)} | set(source.shapes)

    def kind(node: ast.expr) -> str:
        if sizes.number(node) is not None:
            return "number"
        is_tensor = isinstance(node, ast.Attribute) or (isinstance(node, ast.Name) and node.id in tensors)
        return "tensor" if is_tensor else source.text(node)

    for launch in launches(source):
        for left, right in zip(launch.call.args, launch.call.args[1:], strict=False):
            if kind(left) == kind(right):
                start, end = source.span(left)[0], source.span(right)[1]
                gap = source.between(source.span(left)[1], source.span(right)[0])
                yield Edit(start, end, source.text(right) + gap + source.text(left))


@source_operator(Fault.LAUNCH, "a launch left out")
def launch_missing(source: Source) -> Iterator[Edit]:
    for launch in launches(source):
        yield source.replace(launch.statement, "pass")


@source_operator(Fault.LAUNCH, "half a block for a whole one's grid")
def block_halved(source: Source) -> Iterator[Edit]:
    """Halve a block size in the launch's meta-parameters, but not in its grid."""
    for launch in launches(source):
        for keyword in launch.call.keywords:
            match keyword:
                case ast.keyword(arg=str(name), value=ast.Constant(value=int(size))) if name.isupper():
                    if size >= 32 and size & (size - 1) == 0:
                        yield source.replace(keyword.value, str(size // 2))


@source_operator(Fault.LAUNCH, "two results swapped")
def results_swapped(source: Source) -> Iterator[Edit]:
    for node in source.forward_nodes:
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple) and len(node.value.elts) > 1:
            first, second, *rest = (source.text(part) for part in node.value.elts)
            yield source.replace(node.value, f"({', '.join((second, first, *rest))})")
