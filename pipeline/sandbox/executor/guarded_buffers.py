"""The buffers of a program: one allocation, with guard bands around each storage that no kernel may write to."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from itertools import accumulate

import torch
from torch import Tensor

from .program import Pointer, Program, View

BAND = 4096  # bytes on either side of each storage
_ALIGNMENT = 256  # bytes, as in torch's allocator: kernels are compiled for the alignment of their pointers
# The byte that fills unwritten memory. Every floating type reads 0xFF as NaN, and 0x7B as a huge number.
POISONS: Mapping[str, int] = {"nan": 0xFF, "huge": 0x7B}


class Arena:
    """Memory for the storages of one program, reused by all of its runs."""

    def __init__(self, program: Program, device: torch.device) -> None:
        """Raises `torch.OutOfMemoryError`."""
        self._sizes = program.storages
        self._starts: list[int] = []
        self._bands: list[tuple[int, int]] = []
        end = 0
        for size in self._sizes:
            start = -(-(end + BAND) // _ALIGNMENT) * _ALIGNMENT
            self._bands.append((end, start))
            self._starts.append(start)
            end = start + size
        self._bands.append((end, end + BAND))
        self._bytes = torch.empty(end + BAND, dtype=torch.uint8, device=device)
        self._poison = 0

    def reset(self, poison: str) -> None:
        """Fill storages and bands with the poison."""
        self._poison = POISONS[poison]
        self._bytes.fill_(self._poison)

    def view(self, view: View) -> Tensor:
        start, size = self._starts[view.storage], self._sizes[view.storage]
        values = self._bytes[start : start + size // view.dtype.itemsize * view.dtype.itemsize].view(view.dtype)
        return values.as_strided(view.shape, view.strides, start // view.dtype.itemsize + view.offset)

    def write(self, storage: int, data: Tensor) -> None:
        """Write a storage. Raises `ValueError` unless `data` has exactly its size."""
        if data.numel() != self._sizes[storage]:
            raise ValueError(f"{data.numel()} bytes for a storage of {self._sizes[storage]}")
        self._bytes[self._starts[storage] :][: data.numel()].copy_(data)

    def address(self, pointer: Pointer) -> int:
        return self._bytes.data_ptr() + self._starts[pointer.storage] + pointer.offset

    def overrun(self) -> str:
        """The storage next to the first band that was written to, as a message; "" if all bands are intact.

        Only the bands are compared, with the host's own value: a kernel could have overwritten any copy on the device.
        """
        written = torch.cat([self._bytes[first:last] for first, last in self._bands]) != self._poison
        if not bool(written.any()):
            return ""
        ends = list(accumulate(last - first for first, last in self._bands))
        storage = bisect_right(ends, int(written.nonzero()[0])) - 1
        return f"writes outside of its buffers, beside storage {max(0, storage)}"
