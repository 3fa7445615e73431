"""The buffers of a program: one piece of memory, with bands around each storage that nobody may write to."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from itertools import accumulate

import torch
from torch import Tensor

from .program import Pointer, Program, View

BAND = 4096  # bytes on either side of each storage
_ALIGNMENT = 256  # bytes, as an allocator's: kernels are compiled for what pointers can be divided by
# What memory holds before anything was written. Every floating type reads 0xFF as NaN, and 0x7B as a huge number.
POISONS: Mapping[str, int] = {"nan": 0xFF, "huge": 0x7B}


class Arena:
    """Memory for the storages of one program, used again for each of its runs."""

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
        """Storages and bands hold the poison."""
        self._poison = POISONS[poison]
        self._bytes.fill_(self._poison)

    def view(self, view: View) -> Tensor:
        start, size = self._starts[view.storage], self._sizes[view.storage]
        values = self._bytes[start : start + size // view.dtype.itemsize * view.dtype.itemsize].view(view.dtype)
        return values.as_strided(view.shape, view.strides, start // view.dtype.itemsize + view.offset)

    def write(self, storage: int, data: Tensor) -> None:
        """Raises `ValueError` if the bytes are not as many as the storage has."""
        if data.numel() != self._sizes[storage]:
            raise ValueError(f"{data.numel()} bytes for a storage of {self._sizes[storage]}")
        self._bytes[self._starts[storage] :][: data.numel()].copy_(data)

    def address(self, pointer: Pointer) -> int:
        return self._bytes.data_ptr() + self._starts[pointer.storage] + pointer.offset

    def overrun(self) -> str:
        """Beside which storage a band was written to; "" if none was.

        Nothing of ours that lies on the device says where to look: who writes far outside could have written there too.
        """
        found = torch.cat([self._bytes[first:last] for first, last in self._bands]) != self._poison
        if not bool(found.any()):
            return ""
        ends = list(accumulate(last - first for first, last in self._bands))
        beside = bisect_right(ends, int(found.nonzero()[0])) - 1
        return f"writes outside of its buffers, beside storage {max(0, beside)}"
