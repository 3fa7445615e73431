"""Wrong reductions, in a block and over blocks."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .operator import Fault, Operator, in_kernels
from .roles import Role, dotted
from .source_edits import Edit, Kernel, argument

_REDUCTIONS = {"sum": ("max",), "max": ("sum", "min"), "min": ("max", "sum"), "cumsum": ("cumprod",)}


def other_reduction(kernel: Kernel) -> Iterator[Edit]:
    for name, others in _REDUCTIONS.items():
        for call in kernel.calls(name):
            for other in others:
                yield kernel.source.replace(call.func, f"tl.{other}")


def other_axis(kernel: Kernel) -> Iterator[Edit]:
    for call in kernel.calls(*_REDUCTIONS):
        axis = argument(call, 1, "axis")
        if isinstance(axis, ast.Constant) and axis.value in (0, 1):
            yield kernel.source.replace(axis, str(1 - axis.value))


def _ranges(kernel: Kernel) -> Iterator[ast.Call]:
    """With a start, an end and a step: over the blocks of a reduction."""
    for loop in kernel.nodes(ast.For):
        call = loop.iter
        if isinstance(call, ast.Call) and dotted(call.func).endswith("range") and len(call.args) == 3:
            yield call


def last_block_missing(kernel: Kernel) -> Iterator[Edit]:
    source = kernel.source
    for call in _ranges(kernel):
        _, end, step = call.args
        yield source.replace(end, f"{source.text(end)} - {source.grouped(step)}")
        yield source.replace(end, f"{source.text(end)} // {source.grouped(step)} * {source.grouped(step)}")


def first_block_missing(kernel: Kernel) -> Iterator[Edit]:
    for call in _ranges(kernel):
        yield kernel.source.replace(call.args[0], kernel.source.text(call.args[2]))


def only_last_block(kernel: Kernel) -> Iterator[Edit]:
    """`acc += x` as `acc = x`."""
    source = kernel.source
    for node in kernel.nodes(ast.AugAssign):
        if isinstance(node.target, ast.Name) and isinstance(node.op, ast.Add):
            yield source.replace(node, f"{node.target.id} = {source.grouped(node.value)}")


def _counts(kernel: Kernel) -> Iterator[ast.BinOp]:
    """Divisions by a number of elements."""
    for node in kernel.operations(Role.VALUE, ast.Div):
        number = node.right.value if isinstance(node.right, ast.Constant) else None
        whole = isinstance(number, int | float) and number == round(number)
        cast = kernel.source.text(node.right).endswith(".to(tl.float32)")
        if whole or cast or kernel.roles.of(node.right) is Role.INDEX:
            yield node


def division_missing(kernel: Kernel) -> Iterator[Edit]:
    for node in _counts(kernel):
        yield kernel.source.replace(node, kernel.source.grouped(node.left))


def count_one_off(kernel: Kernel) -> Iterator[Edit]:
    """As in a variance that is or is not corrected."""
    for node in _counts(kernel):
        yield kernel.source.replace(node.right, f"({kernel.source.text(node.right)} - 1)")


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


OPERATORS = (
    Operator("other_reduction", Fault.REDUCTION, "another reduction", in_kernels(other_reduction)),
    Operator("other_axis", Fault.REDUCTION, "another axis of the block", in_kernels(other_axis)),
    Operator("last_block_missing", Fault.REDUCTION, "without the last block", in_kernels(last_block_missing)),
    Operator("first_block_missing", Fault.REDUCTION, "without the first block", in_kernels(first_block_missing)),
    Operator("only_last_block", Fault.REDUCTION, "nothing but the last block", in_kernels(only_last_block)),
    Operator("division_missing", Fault.REDUCTION, "a sum for a mean", in_kernels(division_missing)),
    Operator("count_one_off", Fault.REDUCTION, "a count one off", in_kernels(count_one_off)),
    Operator("initial_value", Fault.REDUCTION, "another initial value", in_kernels(initial_value)),
)
