"""Types of a kernel's values: the axes that a value varies over, and its dtype."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

_POINTERS = {
    "*fp64": "float64", "*fp32": "float32", "*fp16": "float16", "*bf16": "bfloat16", "*i64": "int64", "*i32": "int32",
    "*i16": "int16", "*i8": "int8", "*u8": "uint8", "*i1": "int1",
}  # fmt: skip
_ORDER = ("int1", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64")


@dataclass(frozen=True, slots=True)
class Value:
    """The type of a value."""

    axes: frozenset[str] = frozenset()  # prefixes of `iteration_space.Axis`
    dtype: str = ""  # as in `tl.float32`; "" if unknown
    literal: bool = False  # a Python number, which takes the dtype of the other operand

    @property
    def is_float(self) -> bool:
        return self.dtype.startswith(("float", "bfloat"))


CONDITION = Value(dtype="int1", literal=True)  # a condition that is known


def element(pointer_type: str) -> str:
    """The dtype that a pointer parameter of this type points to; "" if unknown."""
    return _POINTERS.get(pointer_type, "")


def combined(values: Iterable[Value], dtype: str | None = None) -> Value:
    """The type of an elementwise function of `values`; it has the promoted dtype if `dtype` is None."""
    values = list(values)
    axes = frozenset().union(*(value.axes for value in values))
    if dtype is None:
        typed = [value.dtype for value in values if not value.literal] or [value.dtype for value in values]
        dtype = max(typed, key=_ORDER.index) if typed and set(typed) <= set(_ORDER) else ""
    return Value(axes, dtype, bool(values) and all(value.literal for value in values))


def literal(node: ast.expr) -> Value | None:
    """The type of a Python number or of `float("inf")`; None for any other expression."""
    match node:
        case ast.Constant(value=bool()):
            return CONDITION
        case ast.Constant(value=int()):
            return Value(dtype="int32", literal=True)
        case ast.Constant(value=float()) | ast.Call(func=ast.Name("float"), args=[ast.Constant(value=str())]):
            return Value(dtype="float32", literal=True)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return literal(operand)
    return None
