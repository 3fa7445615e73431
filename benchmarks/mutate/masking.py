"""Missing, wrong and misplaced masks."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .operator import Fault, kernel_operator
from .roles import Role
from .source_edits import Edit, Kernel, argument, argument_node

_MASK_POSITIONS = {"load": 1, "store": 2, "atomic_add": 2}
_CLOSED: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
}


def _masks(kernel: Kernel) -> Iterator[tuple[ast.Call, ast.expr]]:
    for name, place in _MASK_POSITIONS.items():
        for call in kernel.calls(name):
            if (mask := argument(call, place, "mask")) is not None:
                yield call, mask


@kernel_operator(Fault.MASKING, "no mask")
def mask_dropped(kernel: Kernel) -> Iterator[Edit]:
    """Remove the mask, and `other` with it, since Triton accepts `other` only with a mask."""
    source = kernel.source
    for call, mask in _masks(kernel):
        dropped = [mask, argument(call, 2, "other")] if "load" in source.text(call.func) else [mask]
        arguments = [source.text(part) for part in call.args if part not in dropped]
        arguments += [source.text(keyword) for keyword in call.keywords if keyword.value not in dropped]
        yield source.replace(call, f"{source.text(call.func)}({', '.join(arguments)})")


@kernel_operator(Fault.MASKING, "half of a mask")
def mask_weakened(kernel: Kernel) -> Iterator[Edit]:
    for node in kernel.operations(Role.MASK, ast.BitAnd):
        for kept in (node.left, node.right):
            yield kernel.source.replace(node, kernel.source.grouped(kept))


@kernel_operator(Fault.MASKING, "a bound that counts or does not")
def bound_closed(kernel: Kernel) -> Iterator[Edit]:
    """Swap `<` and `<=`, and `>` and `>=`."""
    source = kernel.source
    for node in kernel.nodes(ast.Compare):
        symbols = _CLOSED.get(type(node.ops[0]))
        if symbols is not None and len(node.ops) == 1:
            start, end = source.span(node.left)[1], source.span(node.comparators[0])[0]
            yield Edit(start, end, source.between(start, end).replace(*symbols, 1))


@kernel_operator(Fault.MASKING, "a bound one short")
def bound_short(kernel: Kernel) -> Iterator[Edit]:
    source = kernel.source
    for node in kernel.nodes(ast.Compare):
        if len(node.ops) == 1 and isinstance(node.ops[0], ast.Lt):
            bound = node.comparators[0]
            yield source.replace(bound, f"({source.text(bound)} - 1)")


@kernel_operator(Fault.MASKING, "the mask of another axis")
def other_mask(kernel: Kernel) -> Iterator[Edit]:
    """Use one of the first two other masks that are assigned before."""
    made = {name: value.lineno for name, value in reversed(list(kernel.assigned(Role.MASK)))}
    for call, mask in _masks(kernel):
        for node in ast.walk(mask):
            if isinstance(node, ast.Name) and node.id in made:
                for other in [name for name, line in made.items() if name != node.id and line < call.lineno][:2]:
                    yield kernel.source.replace(node, other)


@kernel_operator(Fault.MASKING, "another value for what is masked")
def filler(kernel: Kernel) -> Iterator[Edit]:
    """Remove `other`, the value of masked elements, or change it."""
    for call in kernel.calls("load"):
        value, whole = argument(call, 2, "other"), argument_node(call, 2, "other")
        if value is not None and whole is not None:
            yield kernel.source.without(call, whole)
            yield kernel.source.replace(value, "1.0" if kernel.source.text(value) in ("0.0", "0") else "0.0")


@kernel_operator(Fault.MASKING, "masked elements counted")
def guard_dropped(kernel: Kernel) -> Iterator[Edit]:
    """Replace `tl.where(mask, x, 0.0)` by `x`."""
    for call in kernel.calls("where"):
        if len(call.args) == 3 and isinstance(call.args[2], ast.Constant | ast.Call | ast.UnaryOp):
            yield kernel.source.replace(call, kernel.source.grouped(call.args[1]))
