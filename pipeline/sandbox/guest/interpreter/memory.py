"""The memory that a launch may touch: the storages of its tensor arguments, and nothing else."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from triton._C.libtriton import interpreter as native

from ..candidate.call_memory import Cells
from ..lib.faults import OutOfBounds

Array = np.ndarray[Any, np.dtype[Any]]
Snapshot = tuple[list[bytes], list[tuple[Array, Array]]]  # contents of storages; flags of defined bytes, with copies


class Memory:
    """Address ranges `[start, end)` of the storages that one launch was given, in order of address."""

    def __init__(self) -> None:
        self.starts = np.zeros(0, dtype=np.uint64)
        self.ends = np.zeros(0, dtype=np.uint64)
        self.cells: Mapping[int, Cells] = {}  # by start, where loads and stores are checked byte by byte

    def allow(self, tensors: Iterable[torch.Tensor], cells: Mapping[int, Cells] | None = None) -> None:
        """Allow the storages of `tensors`, and only them; of these, the bytes that their cells allow."""
        self.cells = cells or {}
        storages = (tensor.untyped_storage() for tensor in tensors)
        ranges = sorted({(storage.data_ptr(), storage.data_ptr() + storage.nbytes()) for storage in storages})
        self.starts = np.array([start for start, _ in ranges], dtype=np.uint64)
        self.ends = np.array([end for _, end in ranges], dtype=np.uint64)

    def check_atomic(self, addresses: Array, active: Array, itemsize: int) -> None:
        """Raise OutOfBounds unless `itemsize` bytes at each active address may be loaded and stored."""
        touched = addresses if active.all() else addresses[active]
        if touched.size and self._home(touched, itemsize) is None:
            self._check_each(touched, itemsize)
        for cells, offsets in self._cells(addresses, active, itemsize):
            cells.load(offsets, itemsize)
            cells.store(offsets, itemsize)

    def load(self, addresses: Array, active: Array, filler: Array, dtype: np.dtype[Any]) -> Array:
        """Load values of `dtype`, and `filler` where not active. Shapes are broadcast. Raises: OutOfBounds."""
        if active.all():
            view, places = self._places(addresses, active, dtype)
            self._check_load(addresses, active, dtype.itemsize)
            return native.load(*whole(addresses, active, filler), dtype) if view is None else view.take(places)
        addresses, active = np.broadcast_arrays(addresses, active)
        if not active.any():
            return np.broadcast_to(filler, active.shape)
        view, places = self._places(addresses, active, dtype)
        self._check_load(addresses, active, dtype.itemsize)
        if view is None:
            return native.load(*whole(addresses, active, filler), dtype)
        return np.where(active, view.take(places), filler)

    def store(self, addresses: Array, value: Array, active: Array) -> None:
        """Store values; of equal addresses, the last counts. Shapes are broadcast. Raises: OutOfBounds."""
        addresses, value, active = np.broadcast_arrays(addresses, value, active)
        if not active.any():
            return
        view, places = self._places(addresses, active, value.dtype)
        for cells, offsets in self._cells(addresses, active, value.itemsize):
            cells.store(offsets, value.itemsize)
        if view is None:
            native.store(*whole(addresses, value, active))
        elif active.all():
            view[places.reshape(-1)] = value.reshape(-1)
        else:
            view[places[active]] = value[active]

    def _check_load(self, addresses: Array, active: Array, itemsize: int) -> None:
        for cells, offsets in self._cells(addresses, active, itemsize):
            cells.load(offsets, itemsize)

    def _cells(self, addresses: Array, active: Array, itemsize: int) -> Iterator[tuple[Cells, Array]]:
        """The cells of the storages that the active addresses lie in, each with the offsets of these addresses."""
        touched = addresses if active.all() else addresses[active]
        if not self.cells or not touched.size:
            return
        home = self._home(touched, itemsize)
        if home is not None:
            yield self.cells[home[0]], touched - np.uint64(home[0])
            return
        homes = np.searchsorted(self.starts, touched, side="right") - 1
        for at in np.unique(homes):
            yield self.cells[int(self.starts[at])], touched[homes == at] - self.starts[at]

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
        places = (offsets >> np.uint64(dtype.itemsize.bit_length() - 1)).view(np.int64)
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

    def snapshot(self) -> Snapshot:
        """Copies of the storages, and of the flags of their defined bytes."""
        contents = [ctypes.string_at(int(s), int(e - s)) for s, e in zip(self.starts, self.ends, strict=True)]
        defined = (each.defined for each in self.cells.values() if each.defined is not None)
        return contents, [(flags, flags.copy()) for flags in defined]

    def restore(self, snapshot: Snapshot) -> None:
        contents, defined = snapshot
        for start, content in zip(self.starts, contents, strict=True):
            ctypes.memmove(int(start), content, len(content))
        for flags, before in defined:
            flags[...] = before


def whole(*arrays: Array) -> tuple[Array, ...]:
    """Arrays of one shape in contiguous, writeable memory, as Triton's own loads and stores want them."""
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    return tuple(np.require(np.broadcast_to(a, shape), requirements=["C", "W"]) for a in arrays)
