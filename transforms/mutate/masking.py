"""Missing, wrong and misplaced masks."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .operator import Fault, Operator, in_kernels
from .roles import Role
from .source_edits import Edit, Kernel, argument, given

_PLACES = {"load": 1, "store": 2, "atomic_add": 2}  # of the mask
_CLOSED: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
}


def _masks(kernel: Kernel) -> Iterator[tuple[ast.Call, ast.expr]]:
    for name, place in _PLACES.items():
        for call in kernel.calls(name):
            if (mask := argument(call, place, "mask")) is not None:
                yield call, mask


def mask_dropped(kernel: Kernel) -> Iterator[Edit]:
    """With the value for what is masked, which Triton takes with a mask only."""
    source = kernel.source
    for call, mask in _masks(kernel):
        dropped = [mask, argument(call, 2, "other")] if "load" in source.text(call.func) else [mask]
        arguments = [source.text(part) for part in call.args if part not in dropped]
        arguments += [source.text(keyword) for keyword in call.keywords if keyword.value not in dropped]
        yield source.replace(call, f"{source.text(call.func)}({', '.join(arguments)})")


def mask_weakened(kernel: Kernel) -> Iterator[Edit]:
    for node in kernel.operations(Role.MASK, ast.BitAnd):
        for kept in (node.left, node.right):
            yield kernel.source.replace(node, kernel.source.grouped(kept))


def bound_closed(kernel: Kernel) -> Iterator[Edit]:
    """`<` for `<=` and the like."""
    source = kernel.source
    for node in kernel.nodes(ast.Compare):
        symbols = _CLOSED.get(type(node.ops[0]))
        if symbols is not None and len(node.ops) == 1:
            start, end = source.span(node.left)[1], source.span(node.comparators[0])[0]
            yield Edit(start, end, source.between(start, end).replace(*symbols, 1))


def bound_short(kernel: Kernel) -> Iterator[Edit]:
    source = kernel.source
    for node in kernel.nodes(ast.Compare):
        if len(node.ops) == 1 and isinstance(node.ops[0], ast.Lt):
            bound = node.comparators[0]
            yield source.replace(bound, f"({source.text(bound)} - 1)")


def other_mask(kernel: Kernel) -> Iterator[Edit]:
    """The mask of another axis, among those made before."""
    made = {name: value.lineno for name, value in reversed(list(kernel.assigned(Role.MASK)))}
    for call, mask in _masks(kernel):
        for node in ast.walk(mask):
            if isinstance(node, ast.Name) and node.id in made:
                for other in [name for name, line in made.items() if name != node.id and line < call.lineno][:2]:
                    yield kernel.source.replace(node, other)


def filler(kernel: Kernel) -> Iterator[Edit]:
    """Another value for what is masked, or none."""
    for call in kernel.calls("load"):
        value, whole = argument(call, 2, "other"), given(call, 2, "other")
        if value is not None and whole is not None:
            yield kernel.source.without(call, whole)
            yield kernel.source.replace(value, "1.0" if kernel.source.text(value) in ("0.0", "0") else "0.0")


def guard_dropped(kernel: Kernel) -> Iterator[Edit]:
    """Elements that do not count, counted: `tl.where(mask, x, 0.0)` as `x`."""
    for call in kernel.calls("where"):
        if len(call.args) == 3 and isinstance(call.args[2], ast.Constant | ast.Call | ast.UnaryOp):
            yield kernel.source.replace(call, kernel.source.grouped(call.args[1]))


OPERATORS = (
    Operator("mask_dropped", Fault.MASKING, "no mask", in_kernels(mask_dropped)),
    Operator("mask_weakened", Fault.MASKING, "half of a mask", in_kernels(mask_weakened)),
    Operator("bound_closed", Fault.MASKING, "a bound that counts or does not", in_kernels(bound_closed)),
    Operator("bound_short", Fault.MASKING, "a bound one short", in_kernels(bound_short)),
    Operator("other_mask", Fault.MASKING, "the mask of another axis", in_kernels(other_mask)),
    Operator("filler", Fault.MASKING, "another value for what is masked", in_kernels(filler)),
    Operator("guard_dropped", Fault.MASKING, "masked elements counted", in_kernels(guard_dropped)),
)
