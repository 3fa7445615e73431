"""Wrong addresses and indices."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .operator import Fault, kernel_operator
from .roles import LOADS, STORES, Role
from .source_edits import Edit, Kernel, literal


@kernel_operator(Fault.INDEXING, "an address one off")
def off_by_one(kernel: Kernel) -> Iterator[Edit]:
    """Shift an address, or the index of a program's elements, by one."""
    addresses = [call.args[0] for call in kernel.calls(*LOADS, *STORES) if call.args]
    starts = [value for _, value in kernel.assigned(Role.INDEX) if "program_id" in kernel.source.text(value)]
    for node in addresses + starts:
        for step in ("+ 1", "- 1"):
            yield kernel.source.replace(node, f"({kernel.source.text(node)} {step})")


@kernel_operator(Fault.INDEXING, "strides swapped")
def strides_swapped(kernel: Kernel) -> Iterator[Edit]:
    """Replace `a * s + b` by `a + b * s`, and `a * s + b * t` by `a * t + b * s`."""
    grouped = kernel.source.grouped
    for node in kernel.operations(Role.INDEX, ast.Add):
        match node:
            case ast.BinOp(
                left=ast.BinOp(op=ast.Mult(), left=a, right=s), right=ast.BinOp(op=ast.Mult(), left=b, right=t)
            ):
                yield kernel.source.replace(node, f"({grouped(a)} * {grouped(t)} + {grouped(b)} * {grouped(s)})")
            case ast.BinOp(left=ast.BinOp(op=ast.Mult(), left=a, right=s), right=b) if not isinstance(b, ast.Constant):
                yield kernel.source.replace(node, f"({grouped(a)} + {grouped(b)} * {grouped(s)})")


@kernel_operator(Fault.INDEXING, "another axis of the grid")
def program_axis(kernel: Kernel) -> Iterator[Edit]:
    for call in kernel.calls("program_id"):
        for axis in {0, 1, 2} - {literal(call.args[0])} if call.args else ():
            yield kernel.source.replace(call.args[0], str(axis))


@kernel_operator(Fault.INDEXING, "a divisor one off")
def divisor(kernel: Kernel) -> Iterator[Edit]:
    for node in kernel.operations(Role.INDEX, ast.Mod, ast.FloorDiv):
        number = literal(node.right)
        other = f"({kernel.source.text(node.right)} + 1)" if number is None else str(number + 1)
        yield kernel.source.replace(node.right, other)


@kernel_operator(Fault.INDEXING, "remainder for quotient")
def modulo_for_division(kernel: Kernel) -> Iterator[Edit]:
    for node in kernel.operations(Role.INDEX, ast.Mod, ast.FloorDiv):
        symbols = ("%", "//") if isinstance(node.op, ast.Mod) else ("//", "%")
        yield kernel.source.operator(node, *symbols)


@kernel_operator(Fault.INDEXING, "a stride one off")
def stride(kernel: Kernel) -> Iterator[Edit]:
    for node in kernel.operations(Role.INDEX, ast.Mult):
        factor = node.right
        number = literal(factor) or 0
        if number > 1:
            for other in (number - 1, number + 1):
                yield kernel.source.replace(factor, str(other))
        elif isinstance(factor, ast.Name) and factor.id in kernel.roles.parameters:
            yield kernel.source.replace(factor, f"({factor.id} + 1)")


@kernel_operator(Fault.INDEXING, "an offset one off")
def offset(kernel: Kernel) -> Iterator[Edit]:
    """Change a constant summand by one."""
    for node in kernel.operations(Role.INDEX, ast.Add, ast.Sub):
        number = literal(node.right)
        if number is not None:
            for other in (number - 1, number + 1):
                yield kernel.source.replace(node.right, str(other))


@kernel_operator(Fault.INDEXING, "a part of an address left out")
def index_term_dropped(kernel: Kernel) -> Iterator[Edit]:
    for node in kernel.operations(Role.INDEX, ast.Add, ast.Sub):
        for kept in (node.left, node.right):
            yield kernel.source.replace(node, kernel.source.grouped(kept))


@kernel_operator(Fault.INDEXING, "the index of something else")
def other_index(kernel: Kernel) -> Iterator[Edit]:
    """Replace an index in an address by the nearest other index that is assigned before."""
    made = {name: value.lineno for name, value in reversed(list(kernel.assigned(Role.INDEX)))}
    for call in kernel.calls(*LOADS, *STORES):
        for node in ast.walk(call.args[0]) if call.args else ():
            if isinstance(node, ast.Name) and node.id in made:
                others = [name for name, line in made.items() if name != node.id and line < call.lineno]
                for other in sorted(others, key=lambda name: abs(made[name] - made[node.id]))[:1]:
                    yield kernel.source.replace(node, other)
