"""Types of blocks and integers of a kernel's text, remembered: Triton's frontend makes them anew for every operation.

On a GPU that is done once, when a kernel is compiled; an interpreter does it in every pass.
"""

from __future__ import annotations

from typing import Any

import triton.language as tl
from triton.language.semantic import TritonSemantic

_make_block_type, _make_tensor = tl.block_type.__init__, tl.tensor.__init__
_make_constant = TritonSemantic.scalar_constant
_block_types: dict[tuple[Any, ...], dict[str, Any]] = {}  # the attributes of each
_integers: dict[tuple[int, str], tl.tensor] = {}


def install() -> None:
    tl.block_type.__init__, tl.tensor.__init__ = _block_type, _tensor
    TritonSemantic.scalar_constant = _constant


def _block_type(self: tl.block_type, element_ty: tl.dtype, shape: Any) -> None:
    key = (id(element_ty), *[size.value if type(size) is tl.constexpr else size for size in shape])
    known = _block_types.get(key)
    if known is None:
        _make_block_type(self, element_ty, shape)
        self.of_tensors = {}
        _block_types[key] = vars(self).copy()  # holds `element_ty`, so that no other gets its id
    else:
        vars(self).update(known)


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
