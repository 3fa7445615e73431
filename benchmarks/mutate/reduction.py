"""Wrong reductions within a block and over blocks."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .operator import Fault, kernel_operator
from .roles import Role, dotted
from .source_edits import Edit, Kernel, argument

_REDUCTIONS = {"sum": ("max",), "max": ("sum", "min"), "min": ("max", "sum"), "cumsum": ("cumprod",)}


@kernel_operator(Fault.REDUCTION, "another reduction")
def other_reduction(kernel: Kernel) -> Iterator[Edit]:
    for name, others in _REDUCTIONS.items():
        for call in kernel.calls(name):
            for other in others:
                yield kernel.source.replace(call.func, f"tl.{other}")


@kernel_operator(Fault.REDUCTION, "another axis of the block")
def other_axis(kernel: Kernel) -> Iterator[Edit]:
    for call in kernel.calls(*_REDUCTIONS):
        axis = argument(call, 1, "axis")
        if isinstance(axis, ast.Constant) and axis.value in (0, 1):
            yield kernel.source.replace(axis, str(1 - axis.value))


def _ranges(kernel: Kernel) -> Iterator[ast.Call]:
    """Calls of `range` with three arguments that a loop iterates over: the blocks of a reduction."""
    for loop in kernel.nodes(ast.For):
        call = loop.iter
        if isinstance(call, ast.Call) and dotted(call.func).endswith("range") and len(call.args) == 3:
            yield call


@kernel_operator(Fault.REDUCTION, "without the last block")
def last_block_missing(kernel: Kernel) -> Iterator[Edit]:
    source = kernel.source
    for call in _ranges(kernel):
        _, end, step = call.args
        yield source.replace(end, f"{source.text(end)} - {source.grouped(step)}")
        yield source.replace(end, f"{source.text(end)} // {source.grouped(step)} * {source.grouped(step)}")


@kernel_operator(Fault.REDUCTION, "without the first block")
def first_block_missing(kernel: Kernel) -> Iterator[Edit]:
    for call in _ranges(kernel):
        yield kernel.source.replace(call.args[0], kernel.source.text(call.args[2]))


@kernel_operator(Fault.REDUCTION, "nothing but the last block")
def only_last_block(kernel: Kernel) -> Iterator[Edit]:
    """Replace `acc += x` by `acc = x`."""
    source = kernel.source
    for node in kernel.nodes(ast.AugAssign):
        if isinstance(node.target, ast.Name) and isinstance(node.op, ast.Add):
            yield source.replace(node, f"{node.target.id} = {source.grouped(node.value)}")


def _counts(kernel: Kernel) -> Iterator[ast.BinOp]:
    """Divisions by what is probably a number of elements."""
    for node in kernel.operations(Role.VALUE, ast.Div):
        number = node.right.value if isinstance(node.right, ast.Constant) else None
        whole = isinstance(number, int | float) and number == round(number)
        cast = kernel.source.text(node.right).endswith(".to(tl.float32)")
        if whole or cast or kernel.roles.of(node.right) is Role.INDEX:
            yield node


@kernel_operator(Fault.REDUCTION, "a sum for a mean")
def division_missing(kernel: Kernel) -> Iterator[Edit]:
    for node in _counts(kernel):
        yield kernel.source.replace(node, kernel.source.grouped(node.left))


@kernel_operator(Fault.REDUCTION, "a count one off")
def count_one_off(kernel: Kernel) -> Iterator[Edit]:
    """Subtract one from a divisor, as Bessel's correction of a variance does."""
    for node in _counts(kernel):
        yield kernel.source.replace(node.right, f"({kernel.source.text(node.right)} - 1)")


@kernel_operator(Fault.REDUCTION, "another initial value")
def initial_value(kernel: Kernel) -> Iterator[Edit]:
    source = kernel.source
    for call in kernel.calls("zeros"):
        shape, dtype = argument(call, 0, "shape"), argument(call, 1, "dtype")
        if shape is not None and dtype is not None:
            yield source.replace(call, f"tl.full({source.text(shape)}, 1.0, {source.text(dtype)})")
    for call in kernel.calls("full"):
        value = argument(call, 1, "value")
        if value is not None:
            yield source.replace(value, "0.0")
