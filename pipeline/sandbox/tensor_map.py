"""Tensor descriptors that the host code of a kernel makes, in the CUDA driver's encoding: `CUtensorMap` in `cuda.h`."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

MAP = "nvTmaDesc"  # Triton's name of the argument type
MAP_BYTES = 128
MAP_ALIGNMENT = 64  # bytes
_BASE_ALIGNMENT = 16  # bytes, of the first element and of strides
_MAX_RANK, _MAX_LENGTH, _MAX_STRIDE, _MAX_BLOCK, _MAX_SWIZZLE = 5, 2**32, 2**40, 256, 6
# `CUtensorMapDataType` -> bytes: u8, u16, u32, i32, u64, i64, f16, f32, f64, bf16, f32 flushed to zero, tf32 twice
_BYTES = (1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4)
_FLOATS = range(6, 13)
# `CUtensorMapInterleave`, `CUtensorMapL2promotion`: none, and 128 bytes, as in Triton's own driver.
_NO_INTERLEAVE, _PROMOTE_128 = 0, 2


@dataclass(frozen=True, slots=True)
class Tiling:
    """A tensor descriptor without its address. Dimensions are outermost first; the last one is contiguous."""

    element: int  # a `CUtensorMapDataType`
    shape: tuple[int, ...]  # elements
    strides: tuple[int, ...]  # bytes, of all dimensions but the last
    block: tuple[int, ...]  # elements
    swizzle: int  # a `CUtensorMapSwizzle`
    nan: bool  # elements outside of the shape are read as NaN, not as zero

    def __post_init__(self) -> None:
        """Raises `ValueError` for what no `CUtensorMap` can be. The driver refuses some that pass this check."""
        rank = len(self.shape)
        possible = (
            1 <= rank <= _MAX_RANK
            and (len(self.strides), len(self.block)) == (rank - 1, rank)
            and 0 <= self.element < len(_BYTES)
            and 0 <= self.swizzle <= _MAX_SWIZZLE
            and all(1 <= length <= _MAX_LENGTH for length in self.shape)
            and all(0 <= stride < _MAX_STRIDE and stride % _BASE_ALIGNMENT == 0 for stride in self.strides)
            and all(1 <= length <= _MAX_BLOCK for length in self.block)
            and self.block[-1] * _BYTES[self.element] % _BASE_ALIGNMENT == 0
            and (self.element in _FLOATS or not self.nan)
        )
        if not possible:
            raise ValueError(f"no tensor map is a {self!s:.200}")

    @property
    def extent(self) -> int:
        """Bytes from the first element's start to the last element's end. A kernel cannot reach beyond them."""
        rows = sum((n - 1) * stride for n, stride in zip(self.shape[:-1], self.strides, strict=True))
        return rows + self.shape[-1] * _BYTES[self.element]

    def within(self, offset: int, size: int) -> bool:
        """True if the tensor is aligned and fits at that offset into an aligned buffer of that size, both in bytes."""
        return offset % _BASE_ALIGNMENT == 0 and 0 <= offset <= size - self.extent

    def encoding(self, address: int) -> list[Any]:
        """The arguments of `cuTensorMapEncodeTiled` after the map itself, with dimensions innermost first."""
        rank = len(self.shape)
        return [
            ctypes.c_int(self.element),
            ctypes.c_uint32(rank),
            ctypes.c_void_p(address),
            (ctypes.c_uint64 * rank)(*reversed(self.shape)),
            (ctypes.c_uint64 * rank)(*reversed(self.strides)),  # one element too long, since C has no empty arrays
            (ctypes.c_uint32 * rank)(*reversed(self.block)),
            (ctypes.c_uint32 * rank)(*[1] * rank),  # every element of a block
            ctypes.c_int(_NO_INTERLEAVE),
            ctypes.c_int(self.swizzle),
            ctypes.c_int(_PROMOTE_128),
            ctypes.c_int(self.nan),
        ]
