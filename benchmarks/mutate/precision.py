"""Lost precision and wrong dtypes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .operator import Fault, kernel_operator, source_operator
from .roles import Role, dotted
from .source_edits import Edit, Kernel, Source, argument

# Round trips of the value `{}` through a narrower format. The last is TF32 with 10 mantissa bits; it truncates where
# hardware rounds.
_ROUND_TRIPS = (
    "({}).to(tl.float16).to(tl.float32)",
    "({}).to(tl.bfloat16).to(tl.float32)",
    "(({}).to(tl.int32, bitcast=True) & -8192).to(tl.float32, bitcast=True)",
)
_HALVES = ("float16", "bfloat16")
_NARROWER = {"tl.float64": "tl.float32", "tl.float32": "tl.float16", "tl.int64": "tl.int16", "tl.int32": "tl.int8"}
_TRUNCATED = "({}).to(tl.int32).to(tl.float32)"


def _float_values(kernel: Kernel) -> Iterator[ast.expr]:
    """Values assigned to names that are neither parameters nor parts of an address, which are integers."""
    integers = kernel.roles.addressing | kernel.roles.parameters
    return (value for name, value in kernel.assigned(Role.VALUE) if name not in integers)


def _round_trips(source: Source, node: ast.expr) -> Iterator[Edit]:
    for form in _ROUND_TRIPS:
        yield source.replace(node, form.format(source.text(node)))


@kernel_operator(Fault.PRECISION, "a loaded value rounded")
def loads(kernel: Kernel) -> Iterator[Edit]:
    calls = list(kernel.calls("load"))
    for value in _float_values(kernel):
        if value in calls:
            yield from _round_trips(kernel.source, value)


@kernel_operator(Fault.PRECISION, "an intermediate value rounded")
def intermediates(kernel: Kernel) -> Iterator[Edit]:
    skipped = list(kernel.calls("load", "zeros", "full", "dot"))
    for value in _float_values(kernel):
        if value not in skipped:
            yield from _round_trips(kernel.source, value)


@kernel_operator(Fault.PRECISION, "a stored value rounded")
def stores(kernel: Kernel) -> Iterator[Edit]:
    for value in kernel.stored("store", "atomic_add"):
        yield from _round_trips(kernel.source, value)


@kernel_operator(Fault.PRECISION, "a sum rounded after each block")
def accumulators(kernel: Kernel) -> Iterator[Edit]:
    """Round an accumulator after each block."""
    source = kernel.source
    for node in kernel.nodes(ast.AugAssign):
        if isinstance(node.target, ast.Name) and isinstance(node.op, ast.Add):
            name = node.target.id
            for form in _ROUND_TRIPS:
                yield source.replace(node, f"{name} = " + form.format(f"{name} + {source.grouped(node.value)}"))


@kernel_operator(Fault.PRECISION, "a product of matrices in less precision")
def operands(kernel: Kernel) -> Iterator[Edit]:
    """Multiply matrices in a lower-precision format of the tensor cores."""
    source = kernel.source
    for call in kernel.calls("dot"):
        if len(call.args) >= 2:
            for half in _HALVES:
                parts = [f"{source.grouped(part)}.to(tl.{half})" for part in call.args[:2]]
                parts += [source.text(part) for part in call.args[2:]]
                parts += [source.text(k) for k in call.keywords if k.arg != "input_precision"]
                yield source.replace(call, f"tl.dot({', '.join(parts)}).to(tl.float32)")
        precision = argument(call, 3, "input_precision")
        if precision is not None:
            for other in ("tf32", "tf32x3"):
                yield source.replace(precision, repr(other))


@source_operator(Fault.PRECISION, "memory in a narrower format")
def buffers(source: Source) -> Iterator[Edit]:
    """Allocate a buffer between kernels in a half-precision format; Triton casts on stores."""
    for node in source.forward_nodes:
        if isinstance(node, ast.Attribute) and dotted(node) == "torch.float32":
            for half in _HALVES:
                yield source.replace(node, f"torch.{half}")


@kernel_operator(Fault.DTYPE, "a value as an integer")
def truncated(kernel: Kernel) -> Iterator[Edit]:
    skipped = list(kernel.calls("zeros", "full"))
    values = [value for value in _float_values(kernel) if value not in skipped]
    for value in [*values, *kernel.stored("store")]:
        yield kernel.source.replace(value, _TRUNCATED.format(kernel.source.text(value)))


@kernel_operator(Fault.DTYPE, "a cast left out")
def cast_dropped(kernel: Kernel) -> Iterator[Edit]:
    for node in kernel.nodes(ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr == "to":
            yield kernel.source.replace(node, kernel.source.grouped(node.func.value))


@kernel_operator(Fault.DTYPE, "a narrower type")
def cast_narrowed(kernel: Kernel) -> Iterator[Edit]:
    """Narrow the target of a cast, or cast the index of a program's elements to int8."""
    source = kernel.source
    for node in kernel.nodes(ast.Call):
        other = _NARROWER.get(source.text(node.args[0]), "") if node.args else ""
        if isinstance(node.func, ast.Attribute) and node.func.attr == "to" and other:
            yield source.replace(node.args[0], other)
    for _, value in kernel.assigned(Role.INDEX):
        if "program_id" in source.text(value):
            yield source.replace(value, f"({source.text(value)}).to(tl.int8)")
