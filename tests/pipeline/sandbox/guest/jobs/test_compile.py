"""Fresh memory of a candidate whose kernels are compiled and not run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from kernelquarry.pipeline.sandbox.guest.jobs.compile import _ZeroedMemory


@pytest.fixture
def littered() -> Iterator[None]:
    """Fill new memory with NaN or the largest integers."""
    torch.use_deterministic_algorithms(True)  # fills new memory
    yield
    torch.use_deterministic_algorithms(False)


def made() -> list[Tensor]:
    like = torch.ones(2, 3)
    options = {"dtype": torch.int64}
    return [
        torch.empty(3),
        torch.empty((2, 3), **options),
        torch.empty_like(like),
        torch.empty_strided((2, 3), (1, 2)),
        like.new_empty(4),
        like.new_empty_strided((2, 3), (1, 2)),
    ]


@pytest.mark.usefixtures("littered")
def test_memory_that_no_kernel_wrote_is_a_valid_index() -> None:
    assert not any(value.eq(0).all() for value in made())
    with _ZeroedMemory():
        assert all(value.eq(0).all() for value in made())
        assert torch.ones(4).index_select(0, torch.empty(2, dtype=torch.int64)).tolist() == [1, 1]
