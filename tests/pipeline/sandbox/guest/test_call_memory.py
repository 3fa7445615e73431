"""The bytes of a call's memory that kernels may load and store."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import Tensor

from kernelquarry.pipeline.sandbox.guest.candidate.call_memory import CallMemory
from kernelquarry.pipeline.sandbox.guest.candidate.launch_log import session
from kernelquarry.pipeline.sandbox.guest.candidate.op_census import Watch
from kernelquarry.pipeline.sandbox.guest.interpreter.memory import Memory
from kernelquarry.pipeline.sandbox.guest.lib.faults import OutOfBounds, Undefined

FLOAT = np.dtype(np.float32)


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch) -> Iterator[CallMemory]:
    """A call under way, whose kernels may store to input 0."""
    memory = CallMemory(("input 0",))
    monkeypatch.setattr(session, "memory", memory)
    with Watch():
        yield memory


def launch(call: CallMemory, tensor: Tensor) -> Memory:
    memory = Memory()
    memory.allow([tensor], call.of_launch({"ptr": tensor}))
    return memory


def load(call: CallMemory, tensor: Tensor, *places: int) -> None:
    addresses = np.array([[tensor.data_ptr() + 4 * place for place in places]], dtype=np.uint64)
    launch(call, tensor).load(addresses, np.ones((1, 1), dtype=bool), np.zeros((1, 1), dtype=FLOAT), FLOAT)


def store(call: CallMemory, tensor: Tensor, *places: int) -> None:
    addresses = np.array([[tensor.data_ptr() + 4 * place for place in places]], dtype=np.uint64)
    launch(call, tensor).store(addresses, np.ones((1, 1), dtype=FLOAT), np.ones((1, 1), dtype=bool))


def test_only_elements_that_the_call_has_written_are_loaded(call: CallMemory) -> None:
    made = torch.empty(4, 6)
    store(call, made, 3, 7)
    made[:, 5].fill_(1.0)
    made[2, :3].copy_(torch.zeros(3))
    load(call, made, 3, 7, 5, 11, 23, 12, 14)
    with pytest.raises(Undefined, match=r"loads ptr\[15\]: nothing has written"):
        load(call, made, 3, 15, 16)


def test_items_between_others_are_checked_by_the_byte(call: CallMemory) -> None:
    made = torch.empty(12, dtype=torch.uint8)
    made[1:6].zero_()
    load(call, made[1:], 0)
    with pytest.raises(Undefined):
        load(call, made[1:], 1)


def test_a_copy_of_undefined_memory_is_undefined(call: CallMemory) -> None:
    made = torch.empty(4, 4)
    made[:2].zero_()
    for copy in (made.clone(), made.t().contiguous().t(), torch.ones(4, 4).copy_(made)):
        load(call, copy.contiguous(), 0, 7)
        with pytest.raises(Undefined):
            load(call, copy.contiguous(), 8)
    with pytest.raises(Undefined, match="add reads"):
        made + 1.0


def test_an_atomic_is_a_load(call: CallMemory) -> None:
    made = torch.empty(3)
    addresses = np.array([[made.data_ptr()]], dtype=np.uint64)
    with pytest.raises(Undefined):
        launch(call, made).check_atomic(addresses, np.ones((1, 1), dtype=bool), 4)


def test_kernels_reach_elements_of_lasting_tensors_only(call: CallMemory) -> None:
    """The first tensor is changed by the reference, the second is not, and the third is unknown."""
    room, other, unknown = (torch.zeros(8) for _ in range(3))
    call.begin({"input 0": room[2:6:2], "state weight": other[:4]})
    load(call, room, 2, 4)
    store(call, room, 2, 4)
    load(call, other, 0, 3)
    load(call, unknown, 0, 7)
    for tensor, place in ((room, 3), (room, 6), (other, 4)):
        with pytest.raises(OutOfBounds, match="lies outside of the tensor"):
            load(call, tensor, place)
    for tensor, place in ((room, 3), (other, 0), (unknown, 0)):
        with pytest.raises(OutOfBounds, match="outlives the call"):
            store(call, tensor, place)
    room[2:6:2].fill_(1.0)
    for written in (room, other[:4], unknown):
        with pytest.raises(OutOfBounds, match="fill_ writes to memory that outlives"):
            written.fill_(1.0)
