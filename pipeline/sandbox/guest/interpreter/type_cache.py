"""Cache of the types of blocks, of integers, and of type promotions in Triton's frontend.

The frontend creates them for each operation. On a GPU that happens once, when a kernel is compiled; an interpreter
repeats it in every pass.
"""

from __future__ import annotations

from typing import Any

import triton.language as tl
from triton.language.semantic import TritonSemantic
from triton.runtime import interpreter

from .batched_builder import stored_as

_make_block_type, _make_tensor = tl.block_type.__init__, tl.tensor.__init__
_make_constant = TritonSemantic.scalar_constant
_compare, _meet, _promote = tl.dtype.__eq__, TritonSemantic.broadcast_impl_value, TritonSemantic.computation_type_impl
_block_types: dict[tuple[Any, ...], dict[str, Any]] = {}  # the attributes of each
_integers: dict[tuple[int, str], tl.tensor] = {}
_promoted: dict[tuple[Any, ...], tl.dtype] = {}


def install() -> None:
    tl.block_type.__init__, tl.tensor.__init__ = _block_type, _tensor
    tl.dtype.__eq__, tl.block_type.with_element_ty = _equal, _with_element_ty
    TritonSemantic.scalar_constant = _constant
    TritonSemantic.broadcast_impl_value, TritonSemantic.computation_type_impl = _broadcast, _computed_in
    interpreter._get_np_dtype = stored_as


def _equal(self: tl.dtype, other: Any) -> bool:
    if self is other:
        return True
    return bool(self.name == other.name if type(other) is tl.dtype else _compare(self, other))


def _block_type(self: tl.block_type, element_ty: tl.dtype, shape: Any) -> None:
    key = (id(element_ty), *[size.value if type(size) is tl.constexpr else size for size in shape])
    known = _block_types.get(key)
    if known is None:
        _make_block_type(self, element_ty, shape)
        self.of_tensors, self.others = {}, {}
        self.sizes = tuple(int(size) for size in self.shape)
        _block_types[key] = vars(self).copy()  # holds `element_ty`, so that no other gets its id
    else:
        vars(self).update(known)


def _with_element_ty(self: tl.block_type, scalar_ty: tl.dtype) -> tl.block_type:
    if id(scalar_ty) not in self.others:
        self.others[id(scalar_ty)] = tl.block_type(scalar_ty, self.shape)
    return self.others[id(scalar_ty)]


def _tensor(self: tl.tensor, handle: Any, type: tl.dtype) -> None:
    common = getattr(type, "of_tensors", None)  # the attributes that all tensors of a type of blocks share
    if common:
        vars(self).update(common)
        self.handle = handle
        return
    _make_tensor(self, handle, type)
    if common is not None:
        common.update({name: value for name, value in vars(self).items() if name != "handle"})


def _constant(self: TritonSemantic, value: Any, dtype: tl.dtype) -> tl.tensor:
    if type(value) is not int or dtype is None:
        return _make_constant(self, value, dtype)
    key = (value, dtype.name)
    if key not in _integers:
        _integers[key] = _make_constant(self, value, dtype)
    return _integers[key]


def _computed_in(
    self: TritonSemantic, a: tl.dtype, a_is_scalar: bool, b: tl.dtype, b_is_scalar: bool, div: bool
) -> Any:
    key = (a.name, a_is_scalar, b.name, b_is_scalar, div)
    if key not in _promoted:
        _promoted[key] = _promote(self, a, a_is_scalar, b, b_is_scalar, div)
    return _promoted[key]


def _broadcast(self: TritonSemantic, lhs: tl.tensor, rhs: tl.tensor) -> tuple[tl.tensor, tl.tensor]:
    left, right = getattr(lhs.type, "sizes", None), getattr(rhs.type, "sizes", None)
    if left == right:
        return lhs, rhs
    if left is None or right is None:
        return (_splat(self, lhs, rhs.type), rhs) if left is None else (lhs, _splat(self, rhs, lhs.type))
    if len(left) != len(right) or any(n != m and 1 not in (n, m) for n, m in zip(left, right, strict=True)):
        return _meet(self, lhs, rhs)
    both = tuple(map(max, left, right))
    return lhs if left == both else _stretch(self, lhs, both), rhs if right == both else _stretch(self, rhs, both)


def _splat(self: TritonSemantic, value: tl.tensor, like: tl.block_type) -> tl.tensor:
    return tl.tensor(self.builder.splat(value.handle, like.sizes), like.with_element_ty(value.type.scalar))


def _stretch(self: TritonSemantic, value: tl.tensor, shape: tuple[int, ...]) -> tl.tensor:
    return tl.tensor(self.builder.create_broadcast(value.handle, shape), tl.block_type(value.type.scalar, list(shape)))
