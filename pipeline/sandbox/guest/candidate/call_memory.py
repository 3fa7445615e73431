"""The memory of one call, byte by byte: what a kernel may load, and where it may store.

A kernel may load bytes that hold a value of this call, and store to tensors that this call allocated. Memory that
outlives the call holds values; a kernel may only store to inputs and state that the reference changes too. Of inputs
and state, a kernel only reaches the bytes of their elements, not the rest of their storages.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kernelquarry.pipeline.sandbox.operator_kinds import ALLOCATE, FREE, VIEW

from ..lib.faults import OutOfBounds, Undefined
from .fake_cuda import tensors_of

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(slots=True)
class Cells:
    """The bytes of a storage, with a 1 for each that a kernel may load from or store to; None: all of them."""

    storage: torch.UntypedStorage  # kept alive, so that no other storage gets its address
    defined: Array | None = None
    writable: Array | None = None
    name: str = ""  # of the kernel's parameter
    first: int = 0  # byte at which the parameter's tensor begins

    def load(self, offsets: Array, itemsize: int) -> None:
        """Check the items at these offsets.

        Raises:
            Undefined: an item of memory that the call allocated holds no value.
            OutOfBounds: an item of an input's or a parameter's storage is no element of the tensor.
        """
        if self.defined is None:
            return
        if self.writable is None:
            self._demand(self.defined, offsets, itemsize, Undefined, "loads", "nothing has written to it in this call")
        else:
            self._demand(self.defined, offsets, itemsize, OutOfBounds, "loads", "it lies outside of the tensor")

    def store(self, offsets: Array, itemsize: int) -> None:
        """Define the items at these offsets. Raises: OutOfBounds: one of them outlives the call."""
        if self.writable is not None:
            self._demand(self.writable, offsets, itemsize, OutOfBounds, "stores to", "it outlives the call")
        if self.defined is not None:
            flags, places, allowed = _items(self.defined, offsets, itemsize)
            flags[places] = allowed

    def _demand(
        self, flags: Array, offsets: Array, itemsize: int, error: type[OutOfBounds], verb: str, why: str
    ) -> None:
        items, places, allowed = _items(flags, offsets, itemsize)
        wrong = items.take(places) != allowed
        if wrong.any():
            wrong = wrong if wrong.ndim == offsets.ndim else wrong.any(axis=-1)
            at = (int(offsets[wrong].min()) - self.first) // itemsize
            raise error(f"a kernel {verb} {self.name}[{at}]: {why}")


def _items(flags: Array, offsets: Array, itemsize: int) -> tuple[Array, Array, int]:
    """The flags as a number for each item, the places of the items at the offsets, and the number of an allowed item.

    Where an item lies between others, the numbers and places are those of bytes.
    """
    if int(np.bitwise_or.reduce(offsets, axis=None)) % itemsize:
        return flags, offsets[..., None].astype(np.int64) + np.arange(itemsize), 1
    whole = flags[: len(flags) // itemsize * itemsize].view(f"u{itemsize}")
    return whole, (offsets // np.uint64(itemsize)).view(np.int64), int("01" * itemsize, 16)


class CallMemory:
    """The storages of one call: those of inputs and state, and those that operators of the call made."""

    def __init__(self, writable: Collection[str]) -> None:
        """Args: writable: inputs and state that kernels may store to, such as "input 0" and "state running_mean"."""
        self._writable = writable
        self._known: dict[int, Cells] = {}  # by address

    def begin(self, lasting: Mapping[str, Tensor]) -> None:
        """Start a call on inputs and state by name."""
        self._known = {}
        for name, tensor in lasting.items():
            storage = tensor.untyped_storage()
            size = storage.nbytes()
            fills = tensor.is_contiguous() and tensor.nbytes == size
            cells = self._known.setdefault(
                storage.data_ptr(), Cells(storage, None if fills else _zeros(size), _zeros(size))
            )
            cells.defined = None if fills else cells.defined
            for flags in (cells.defined, cells.writable if name in self._writable else None):
                if flags is not None:
                    _bytes_of(flags, tensor)[...] = 1

    def of_launch(self, arguments: Mapping[str, Any]) -> dict[int, Cells]:
        """The cells of a launch's storages, by address."""
        found: dict[int, Cells] = {}
        for name, value in arguments.items():
            for tensor in tensors_of([value]):
                first = int(tensor.storage_offset()) * tensor.element_size()
                found.setdefault(_address(tensor), replace(self._cells(tensor), name=name, first=first))
        return found

    def record(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any) -> None:
        """Record an operator that has run.

        Raises:
            Undefined: it reads memory without a value.
            OutOfBounds: it writes to memory that outlives the call.
        """
        operator = func._schema.name.removeprefix("aten::")
        self._add_new(operator, tensors_of([*args, *kwargs.values()]), result)
        if operator in VIEW:
            return
        named = {**dict(zip((each.name for each in func._schema.arguments), args, strict=False)), **kwargs}
        written = {name: named[name] for name in _written(func._schema) if name in named}
        for tensor in tensors_of(written.values()):
            self._check_writable(operator, tensor)
        if operator in ("fill_", "zero_"):
            self._define(args[0], 1)
        elif operator in ("copy_", "clone", "_to_copy"):
            source, target = (args[1], args[0]) if operator == "copy_" else (args[0], result)
            defined = self._defined(source)
            self._define(target, 1 if defined is None else defined)
        elif operator not in FREE:
            ignored = {*written, "self"} if kwargs.get("beta") == 0 else {*written}
            self._check_reads(operator, tensors_of(value for name, value in named.items() if name not in ignored))
            for tensor in tensors_of(value for name, value in written.items() if name != "self"):
                self._define(tensor, 1)

    def _add_new(self, operator: str, given: Iterable[Tensor], result: Any) -> None:
        old = set() if operator == "lift_fresh" else {_address(tensor) for tensor in given}
        for tensor in tensors_of([result]):
            if (address := _address(tensor)) not in old and address not in self._known:
                storage = tensor.untyped_storage()
                self._known[address] = Cells(storage, _zeros(storage.nbytes()) if operator in ALLOCATE else None)

    def _check_reads(self, operator: str, tensors: Iterable[Tensor]) -> None:
        for tensor in tensors:
            defined = self._defined(tensor)
            if defined is not None and not defined.all():
                raise Undefined(f"{operator} reads memory that nothing has written to in this call")

    def _check_writable(self, operator: str, tensor: Tensor) -> None:
        writable = self._cells(tensor).writable
        if writable is not None and not _bytes_of(writable, tensor).all():
            raise OutOfBounds(f"{operator} writes to memory that outlives the call")

    def _cells(self, tensor: Tensor) -> Cells:
        """The cells of a tensor's storage; those of a storage that is not known outlive the call."""
        storage = tensor.untyped_storage()
        return self._known.get(storage.data_ptr()) or Cells(storage, None, _zeros(storage.nbytes()))

    def _defined(self, tensor: Tensor) -> Array | None:
        """A flag for each element; None: all are defined."""
        defined = self._cells(tensor).defined
        return None if defined is None else _bytes_of(defined, tensor).min(axis=-1)

    def _define(self, tensor: Tensor, flags: Array | int) -> None:
        cells = self._known.get(_address(tensor))
        if cells is None or not tensor.numel() or (cells.defined is None and isinstance(flags, int)):
            return
        if cells.defined is None:
            cells.defined = _zeros(cells.storage.nbytes()) + np.uint8(1)
        _bytes_of(cells.defined, tensor)[...] = flags if isinstance(flags, int) else flags[..., None]


def _written(schema: Any) -> list[str]:
    """Names of the parameters that an operator writes to."""
    return [each.name for each in schema.arguments if each.alias_info is not None and each.alias_info.is_write]


def _address(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _zeros(size: int) -> Array:
    return np.zeros(size, dtype=np.uint8)


def _bytes_of(flags: Array, tensor: Tensor) -> Array:
    """The flags of a tensor's elements, in its shape, with an axis for the bytes of an element."""
    size, shape = tensor.element_size(), tuple(tensor.shape)
    begin = flags[tensor.storage_offset() * size :] if tensor.numel() else flags[:0]
    return np.lib.stride_tricks.as_strided(begin, (*shape, size), (*(step * size for step in tensor.stride()), 1))
