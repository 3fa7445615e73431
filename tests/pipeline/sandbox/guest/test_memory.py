"""Loads and stores of the interpreter equal Triton's own, within the allowed storages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
import torch
from triton._C.libtriton import interpreter as native

from kernelquarry.pipeline.sandbox.guest.interpreter.memory import Memory, whole
from kernelquarry.pipeline.sandbox.guest.lib.faults import OutOfBounds

FLOAT = np.dtype(np.float32)
WILD = np.uint64(2**64 - 2)  # no item that begins there ends in any memory


def allowed(*tensors: torch.Tensor) -> Memory:
    memory = Memory()
    memory.allow(tensors)
    return memory


def addresses(tensor: torch.Tensor, places: Iterable[int], *shape: int) -> Any:
    found = [tensor.data_ptr() + tensor.element_size() * place for place in places]
    return np.array(found, dtype=np.uint64).reshape(shape)


def between() -> torch.Tensor:
    """40 bytes (ten float32 numbers) that start at byte 1 of a storage."""
    return torch.arange(44, dtype=torch.uint8)[1:41]


FIRST, SECOND, BYTES = torch.randn(10), torch.randn(10), between()
PLACES = {
    "one storage": addresses(FIRST, [3, 0, 9, 9, 2, 1], 2, 3),
    "two storages": np.stack([addresses(FIRST, [3, 0, 9], 3), addresses(SECOND, [0, 9, 5], 3)]),
    "between items": addresses(BYTES, [0, 4, 8, 12, 16, 20], 2, 3),
    "one row for all": addresses(FIRST, [1, 5, 7], 1, 3),
    "transposed": addresses(FIRST, [4, 4, 4, 6, 6, 6], 3, 2).T,
}
MASKS = {
    "all": np.ones((1, 1), dtype=bool),
    "some": np.array([[False, True, True], [True, False, True]]),
    "none": np.zeros((2, 3), dtype=bool),
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("where", PLACES)
def test_loads_and_stores_are_tritons_own(where: str, mask: str) -> None:
    memory, places, active = allowed(FIRST, SECOND, BYTES), PLACES[where], MASKS[mask]
    wild = np.where(active, places, WILD)
    filler = np.array([[-1.0]], dtype=np.float32)
    loaded = memory.load(wild, active, filler, FLOAT)
    np.testing.assert_array_equal(*np.broadcast_arrays(loaded, native.load(*whole(wild, active, filler), FLOAT)))
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    before = [tensor.clone() for tensor in (FIRST, SECOND, BYTES)]
    memory.store(wild, values, active)
    stored = [tensor.clone() for tensor in (FIRST, SECOND, BYTES)]
    for tensor, old in zip((FIRST, SECOND, BYTES), before, strict=True):
        tensor.copy_(old)
    native.store(*whole(wild, values, active))
    assert all(torch.equal(tensor, new) for tensor, new in zip((FIRST, SECOND, BYTES), stored, strict=True))


@pytest.mark.parametrize("place", [-1, 10])
def test_an_active_address_outside_is_an_error(place: int) -> None:
    memory, tensor = allowed(FIRST), FIRST
    outside = addresses(tensor, [0, place], 1, 2)
    for active in (np.ones((1, 1), dtype=bool), np.array([[True, True], [True, False]])):
        with pytest.raises(OutOfBounds, match=r"^(1 of 2|1 of 3) addresses lie outside"):
            memory.load(outside, active, np.zeros((1, 1), dtype=np.float32), FLOAT)
        with pytest.raises(OutOfBounds):
            memory.store(outside, np.zeros((1, 2), dtype=np.float32), active)
    with pytest.raises(OutOfBounds):
        memory.check_atomic(np.array([[WILD]]), np.ones((1, 1), dtype=bool), FLOAT.itemsize)


def test_an_item_that_ends_outside_is_an_error() -> None:
    tensor = torch.zeros(10, dtype=torch.uint8)
    with pytest.raises(OutOfBounds):
        allowed(tensor).load(addresses(tensor, [8], 1, 1), MASKS["all"], np.zeros((1, 1), dtype=np.float32), FLOAT)
