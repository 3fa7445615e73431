"""The memory that a launch may touch: the storages of its tensor arguments, and nothing else."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from triton._C.libtriton import interpreter as native

from ..lib.errors import OutOfBounds

Array = np.ndarray[Any, np.dtype[Any]]


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
        if touched.size and self._home(touched, itemsize) is None:
            self._check_each(touched, itemsize)

    def load(self, addresses: Array, active: Array, filler: Array, dtype: np.dtype[Any]) -> Array:
        """Load values of `dtype`, and `filler` where not active. Shapes are broadcast. Raises: OutOfBounds."""
        if active.all():
            view, places = self._places(addresses, active, dtype)
            return native.load(*whole(addresses, active, filler), dtype) if view is None else view.take(places)
        addresses, active = np.broadcast_arrays(addresses, active)
        if not active.any():
            return np.broadcast_to(filler, active.shape)
        view, places = self._places(addresses, active, dtype)
        if view is None:
            return native.load(*whole(addresses, active, filler), dtype)
        return np.where(active, view.take(places), filler)

    def store(self, addresses: Array, value: Array, active: Array) -> None:
        """Store values; of equal addresses, the last counts. Shapes are broadcast. Raises: OutOfBounds."""
        addresses, value, active = np.broadcast_arrays(addresses, value, active)
        if not active.any():
            return
        view, places = self._places(addresses, active, value.dtype)
        if view is None:
            native.store(*whole(addresses, value, active))
        elif active.all():
            view[places.reshape(-1)] = value.reshape(-1)
        else:
            view[places[active]] = value[active]

    def _places(self, addresses: Array, active: Array, dtype: np.dtype[Any]) -> tuple[Array | None, Array]:
        """The one storage of all active addresses, and their indices there; other indices are arbitrary.

        None, if there are several storages, or if an address lies between items: Triton's own loads and stores handle
        these, one item after another, and take five times as long.
        """
        touched = addresses if active.all() else np.where(active, addresses, addresses.flat[active.argmax()])
        home = self._home(touched, dtype.itemsize)
        if home is None:
            self._check_each(addresses[active] if active.shape == addresses.shape else addresses, dtype.itemsize)
            return None, addresses
        start, end = home
        offsets = touched - np.uint64(start)
        if int(np.bitwise_or.reduce(offsets, axis=None)) % dtype.itemsize:
            return None, addresses
        memory = (ctypes.c_char * (end - start)).from_address(start)
        places = (offsets // np.uint64(dtype.itemsize)).view(np.int64)
        return np.ndarray(((end - start) // dtype.itemsize,), dtype, memoryview(memory)), places

    def _home(self, touched: Array, itemsize: int) -> tuple[int, int] | None:
        """The one range of all these addresses, by far the most frequent case; None if there are several."""
        lowest, highest = touched.min(), int(touched.max())
        at = int(np.searchsorted(self.starts, lowest, side="right")) - 1
        home = (int(self.starts[at]), int(self.ends[at])) if at >= 0 else (0, 0)
        return home if highest + itemsize <= home[1] else None

    def _check_each(self, touched: Array, itemsize: int) -> None:
        homes = np.searchsorted(self.starts, touched, side="right").astype(np.int64) - 1
        inside = homes >= 0
        end, at = self.ends[homes[inside]], touched[inside]
        inside[inside] = (at < end) & (end - at >= np.uint64(itemsize))
        if not inside.all():
            raise OutOfBounds(f"{int((~inside).sum())} of {touched.size} addresses lie outside the launch's tensors")

    def snapshot(self) -> list[bytes]:
        return [ctypes.string_at(int(s), int(e - s)) for s, e in zip(self.starts, self.ends, strict=True)]

    def restore(self, contents: list[bytes]) -> None:
        for start, content in zip(self.starts, contents, strict=True):
            ctypes.memmove(int(start), content, len(content))


def whole(*arrays: Array) -> tuple[Array, ...]:
    """Arrays of one shape in contiguous, writeable memory, as Triton's own loads and stores want them."""
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    return tuple(np.require(np.broadcast_to(a, shape), requirements=["C", "W"]) for a in arrays)
