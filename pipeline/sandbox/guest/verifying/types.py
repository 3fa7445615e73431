"""Triton's types of blocks, remembered: its frontend makes one for every value, and checks its shape each time.

On a GPU that is done once, when a kernel is compiled. An interpreter does it in every pass, and spent half its time so.
"""

from __future__ import annotations

from typing import Any

import triton.language as tl

_make_block_type, _make_tensor = tl.block_type.__init__, tl.tensor.__init__
_block_types: dict[tuple[Any, ...], dict[str, Any]] = {}  # the attributes of each


def install() -> None:
    tl.block_type.__init__, tl.tensor.__init__ = _block_type, _tensor


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
