"""The memory that a launch may touch: the storages of its tensor arguments, and nothing else."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import torch
from triton._C.libtriton import interpreter as native

from ..candidate.call_memory import Cells
from ..lib.faults import OutOfBounds

Array = np.ndarray[Any, np.dtype[Any]]
Check = Callable[[Cells, Array, int], None]  # of items at offsets, with their size in bytes
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
        if touched.size:
            self._checked(touched, itemsize, _load_and_store)

    def load(self, addresses: Array, active: Array, filler: Array, dtype: np.dtype[Any]) -> Array:
        """Load values of `dtype`, and `filler` where not active. Shapes are broadcast. Raises: OutOfBounds."""
        if active.all():
            view, places = self._places(addresses, None, dtype, Cells.load)
            return native.load(*whole(addresses, active, filler), dtype) if view is None else view.take(places)
        addresses, active = np.broadcast_arrays(addresses, active)
        if not active.any():
            return np.broadcast_to(filler, active.shape)
        view, places = self._places(addresses, active, dtype, Cells.load)
        if view is None:
            return native.load(*whole(addresses, active, filler), dtype)
        return np.where(active, view.take(places), filler)

    def store(self, addresses: Array, value: Array, active: Array) -> None:
        """Store values; of equal addresses, the last counts. Shapes are broadcast. Raises: OutOfBounds."""
        addresses, value, active = np.broadcast_arrays(addresses, value, active)
        every = active.all()
        if not (every or active.any()):
            return
        view, places = self._places(addresses, None if every else active, value.dtype, Cells.store)
        if view is None:
            native.store(*whole(addresses, value, active))
        elif every:
            view[places.reshape(-1)] = value.reshape(-1)
        else:
            view[places[active]] = value[active]

    def _places(
        self, addresses: Array, active: Array | None, dtype: np.dtype[Any], check: Check
    ) -> tuple[Array | None, Array]:
        """The one storage of all active addresses, and their indices there; others are arbitrary.

        `active` is None if all are. The storage is None if there are several, or if an address lies between items:
        Triton's own loads and stores handle these, one item after another, and take five times as long.
        """
        touched = addresses if active is None else np.where(active, addresses, addresses.flat[active.argmax()])
        found = self._checked(touched, dtype.itemsize, check, active)
        if found is None:
            return None, addresses
        (start, end), offsets = found
        if int(np.bitwise_or.reduce(offsets, axis=None)) % dtype.itemsize:
            return None, addresses
        memory = (ctypes.c_char * (end - start)).from_address(start)
        places = (offsets >> np.uint64(dtype.itemsize.bit_length() - 1)).view(np.int64)
        return np.ndarray(((end - start) // dtype.itemsize,), dtype, memoryview(memory)), places

    def _checked(
        self, touched: Array, itemsize: int, check: Check, active: Array | None = None
    ) -> tuple[tuple[int, int], Array] | None:
        """The one range of all these addresses, with their offsets there; None if the active ones have several.

        Raises: OutOfBounds.
        """
        home = self._home(touched, itemsize)
        if home is not None:
            offsets = touched - np.uint64(home[0])
            if self.cells:
                check(self.cells[home[0]], offsets, itemsize)
            return home, offsets
        touched = touched if active is None else touched[active]
        self._check_each(touched, itemsize)
        homes = np.searchsorted(self.starts, touched, side="right") - 1
        for at in np.unique(homes) if self.cells else ():
            check(self.cells[int(self.starts[at])], touched[homes == at] - self.starts[at], itemsize)
        return None

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


def _load_and_store(cells: Cells, offsets: Array, itemsize: int) -> None:
    cells.load(offsets, itemsize)
    cells.store(offsets, itemsize)


def whole(*arrays: Array) -> tuple[Array, ...]:
    """Arrays of one shape in contiguous, writeable memory, as Triton's own loads and stores want them."""
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    return tuple(np.require(np.broadcast_to(a, shape), requirements=["C", "W"]) for a in arrays)
