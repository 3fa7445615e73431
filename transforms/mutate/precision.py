"""Lost precision, and wrong dtypes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .operator import Fault, Operator, in_kernels
from .roles import Role, dotted
from .source_edits import Edit, Kernel, Source, argument

# What the value `{}` becomes. TF32 keeps ten bits of the mantissa; the last cuts off where hardware rounds.
_ROUND_TRIPS = (
    "({}).to(tl.float16).to(tl.float32)",
    "({}).to(tl.bfloat16).to(tl.float32)",
    "(({}).to(tl.int32, bitcast=True) & -8192).to(tl.float32, bitcast=True)",
)
_HALVES = ("float16", "bfloat16")
_NARROWER = {"tl.float64": "tl.float32", "tl.float32": "tl.float16", "tl.int64": "tl.int16", "tl.int32": "tl.int8"}
_TRUNCATED = "({}).to(tl.int32).to(tl.float32)"


def _as_float(kernel: Kernel, name: str) -> bool:
    """A value that no address is made from: those are integers."""
    return name not in kernel.roles.addressing and name not in kernel.roles.parameters


def _round_trips(source: Source, node: ast.expr) -> Iterator[Edit]:
    for form in _ROUND_TRIPS:
        yield source.replace(node, form.format(source.text(node)))


def loads(kernel: Kernel) -> Iterator[Edit]:
    for name, value in kernel.assigned(Role.VALUE):
        if value in list(kernel.calls("load")) and _as_float(kernel, name):
            yield from _round_trips(kernel.source, value)


def intermediates(kernel: Kernel) -> Iterator[Edit]:
    skipped = list(kernel.calls("load", "zeros", "full", "dot"))
    for name, value in kernel.assigned(Role.VALUE):
        if value not in skipped and _as_float(kernel, name):
            yield from _round_trips(kernel.source, value)


def stores(kernel: Kernel) -> Iterator[Edit]:
    for call in kernel.calls("store", "atomic_add"):
        if len(call.args) > 1:
            yield from _round_trips(kernel.source, call.args[1])


def accumulators(kernel: Kernel) -> Iterator[Edit]:
    """Rounded after each block."""
    source = kernel.source
    for node in kernel.nodes(ast.AugAssign):
        if isinstance(node.target, ast.Name) and isinstance(node.op, ast.Add):
            name = node.target.id
            for form in _ROUND_TRIPS:
                yield source.replace(node, f"{name} = " + form.format(f"{name} + {source.grouped(node.value)}"))


def operands(kernel: Kernel) -> Iterator[Edit]:
    """Of a product of matrices, in a format of the tensor cores."""
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


def buffers(source: Source) -> Iterator[Edit]:
    """Memory between kernels in a narrower format; Triton casts what is stored to it."""
    for node in source.forward_nodes:
        if isinstance(node, ast.Attribute) and dotted(node) == "torch.float32":
            for half in _HALVES:
                yield source.replace(node, f"torch.{half}")


def truncated(kernel: Kernel) -> Iterator[Edit]:
    for name, value in kernel.assigned(Role.VALUE):
        if _as_float(kernel, name) and value not in list(kernel.calls("zeros", "full")):
            yield kernel.source.replace(value, _TRUNCATED.format(kernel.source.text(value)))
    for call in kernel.calls("store"):
        if len(call.args) > 1:
            yield kernel.source.replace(call.args[1], _TRUNCATED.format(kernel.source.text(call.args[1])))


def cast_dropped(kernel: Kernel) -> Iterator[Edit]:
    for node in kernel.nodes(ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr == "to":
            yield kernel.source.replace(node, kernel.source.grouped(node.func.value))


def cast_narrowed(kernel: Kernel) -> Iterator[Edit]:
    """A cast, or an index, to a narrower type."""
    source = kernel.source
    for node in kernel.nodes(ast.Call):
        other = _NARROWER.get(source.text(node.args[0]), "") if node.args else ""
        if isinstance(node.func, ast.Attribute) and node.func.attr == "to" and other:
            yield source.replace(node.args[0], other)
    for _, value in kernel.assigned(Role.INDEX):
        if "program_id" in source.text(value):
            yield source.replace(value, f"({source.text(value)}).to(tl.int8)")


OPERATORS = (
    Operator("loads", Fault.PRECISION, "a loaded value rounded", in_kernels(loads)),
    Operator("intermediates", Fault.PRECISION, "an intermediate value rounded", in_kernels(intermediates)),
    Operator("stores", Fault.PRECISION, "a stored value rounded", in_kernels(stores)),
    Operator("accumulators", Fault.PRECISION, "a sum rounded after each block", in_kernels(accumulators)),
    Operator("operands", Fault.PRECISION, "a product of matrices in less precision", in_kernels(operands)),
    Operator("buffers", Fault.PRECISION, "memory in a narrower format", buffers),
    Operator("truncated", Fault.DTYPE, "a value as an integer", in_kernels(truncated)),
    Operator("cast_dropped", Fault.DTYPE, "a cast left out", in_kernels(cast_dropped)),
    Operator("cast_narrowed", Fault.DTYPE, "a narrower type", in_kernels(cast_narrowed)),
)
