"""The memory that a launch may touch: the storages of its tensor arguments, and nothing else."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

Array = np.ndarray[Any, np.dtype[Any]]


class OutOfBounds(Exception):
    """A kernel read or wrote outside the tensors that it was given."""


class Memory:
    """Address ranges `[start, end)` of the storages that one launch was given, in order of address."""

    def __init__(self) -> None:
        self.starts = np.zeros(0, dtype=np.uint64)
        self.ends = np.zeros(0, dtype=np.uint64)

    def allow(self, tensors: Iterable[torch.Tensor]) -> None:
        """Allow the storages of `tensors`, and only them."""
        storages = (tensor.untyped_storage() for tensor in tensors)
        ranges = sorted({(storage.data_ptr(), storage.data_ptr() + storage.nbytes()) for storage in storages})
        self.starts = np.array([start for start, _ in ranges], dtype=np.uint64)
        self.ends = np.array([end for _, end in ranges], dtype=np.uint64)

    def check(self, addresses: Array, active: Array, itemsize: int) -> None:
        """Raise OutOfBounds unless `itemsize` bytes at each active address are allowed."""
        touched = addresses if active.all() else addresses[active]
        if not touched.size:
            return
        lowest, highest = touched.min(), touched.max()
        at = int(np.searchsorted(self.starts, lowest, side="right")) - 1
        if at >= 0 and highest + np.uint64(itemsize) <= self.ends[at]:
            return  # all in one storage, by far the most frequent case
        homes = np.searchsorted(self.starts, touched, side="right").astype(np.int64) - 1
        inside = homes >= 0
        inside[inside] = touched[inside] + np.uint64(itemsize) <= self.ends[homes[inside]]
        if not inside.all():
            raise OutOfBounds(f"{int((~inside).sum())} of {touched.size} addresses lie outside the launch's tensors")

    def snapshot(self) -> list[bytes]:
        return [ctypes.string_at(int(s), int(e - s)) for s, e in zip(self.starts, self.ends, strict=True)]

    def restore(self, contents: list[bytes]) -> None:
        for start, content in zip(self.starts, contents, strict=True):
            ctypes.memmove(int(start), content, len(content))
