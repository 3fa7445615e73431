"""Wrong addresses."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .operator import Fault, Operator, in_kernels
from .roles import LOADS, STORES, Role
from .source_edits import Edit, Kernel, literal


def off_by_one(kernel: Kernel) -> Iterator[Edit]:
    """Of an address, or of the index of a program's elements."""
    addresses = [call.args[0] for call in kernel.calls(*LOADS, *STORES) if call.args]
    starts = [value for _, value in kernel.assigned(Role.INDEX) if "program_id" in kernel.source.text(value)]
    for node in addresses + starts:
        for step in ("+ 1", "- 1"):
            yield kernel.source.replace(node, f"({kernel.source.text(node)} {step})")


def strides_swapped(kernel: Kernel) -> Iterator[Edit]:
    """`a * s + b` as `a + b * s`; `a * s + b * t` as `a * t + b * s`."""
    grouped = kernel.source.grouped
    for node in kernel.operations(Role.INDEX, ast.Add):
        match node:
            case ast.BinOp(
                left=ast.BinOp(op=ast.Mult(), left=a, right=s), right=ast.BinOp(op=ast.Mult(), left=b, right=t)
            ):
                yield kernel.source.replace(node, f"({grouped(a)} * {grouped(t)} + {grouped(b)} * {grouped(s)})")
            case ast.BinOp(left=ast.BinOp(op=ast.Mult(), left=a, right=s), right=b) if not isinstance(b, ast.Constant):
                yield kernel.source.replace(node, f"({grouped(a)} + {grouped(b)} * {grouped(s)})")


def program_axis(kernel: Kernel) -> Iterator[Edit]:
    for call in kernel.calls("program_id"):
        for axis in {0, 1, 2} - {literal(call.args[0])} if call.args else ():
            yield kernel.source.replace(call.args[0], str(axis))


def divisor(kernel: Kernel) -> Iterator[Edit]:
    for node in kernel.operations(Role.INDEX, ast.Mod, ast.FloorDiv):
        number = literal(node.right)
        other = f"({kernel.source.text(node.right)} + 1)" if number is None else str(number + 1)
        yield kernel.source.replace(node.right, other)


def modulo_for_division(kernel: Kernel) -> Iterator[Edit]:
    for node in kernel.operations(Role.INDEX, ast.Mod, ast.FloorDiv):
        symbols = ("%", "//") if isinstance(node.op, ast.Mod) else ("//", "%")
        yield kernel.source.operator(node, *symbols)


def stride(kernel: Kernel) -> Iterator[Edit]:
    for node in kernel.operations(Role.INDEX, ast.Mult):
        factor = node.right
        number = literal(factor) or 0
        if number > 1:
            for other in (number - 1, number + 1):
                yield kernel.source.replace(factor, str(other))
        elif isinstance(factor, ast.Name) and factor.id in kernel.roles.parameters:
            yield kernel.source.replace(factor, f"({factor.id} + 1)")


def offset(kernel: Kernel) -> Iterator[Edit]:
    """A constant in a sum."""
    for node in kernel.operations(Role.INDEX, ast.Add, ast.Sub):
        number = literal(node.right)
        if number is not None:
            for other in (number - 1, number + 1):
                yield kernel.source.replace(node.right, str(other))


def term_dropped(kernel: Kernel) -> Iterator[Edit]:
    for node in kernel.operations(Role.INDEX, ast.Add, ast.Sub):
        for kept in (node.left, node.right):
            yield kernel.source.replace(node, kernel.source.grouped(kept))


def other_index(kernel: Kernel) -> Iterator[Edit]:
    """In an address, an index that was made before for something else."""
    made = {name: value.lineno for name, value in reversed(list(kernel.assigned(Role.INDEX)))}
    for call in kernel.calls(*LOADS, *STORES):
        for node in ast.walk(call.args[0]) if call.args else ():
            if isinstance(node, ast.Name) and node.id in made:
                others = [name for name, line in made.items() if name != node.id and line < call.lineno]
                for other in sorted(others, key=lambda name: abs(made[name] - made[node.id]))[:1]:
                    yield kernel.source.replace(node, other)


OPERATORS = (
    Operator("off_by_one", Fault.INDEXING, "an address one off", in_kernels(off_by_one)),
    Operator("strides_swapped", Fault.INDEXING, "strides swapped", in_kernels(strides_swapped)),
    Operator("program_axis", Fault.INDEXING, "another axis of the grid", in_kernels(program_axis)),
    Operator("divisor", Fault.INDEXING, "a divisor one off", in_kernels(divisor)),
    Operator("modulo_for_division", Fault.INDEXING, "remainder for quotient", in_kernels(modulo_for_division)),
    Operator("stride", Fault.INDEXING, "a stride one off", in_kernels(stride)),
    Operator("offset", Fault.INDEXING, "an offset one off", in_kernels(offset)),
    Operator("index_term_dropped", Fault.INDEXING, "a part of an address left out", in_kernels(term_dropped)),
    Operator("other_index", Fault.INDEXING, "the index of something else", in_kernels(other_index)),
)
