"""Inputs that are not contiguous have the same values as contiguous ones."""

from __future__ import annotations

import pytest
import torch

from kernelquarry.pipeline.sandbox.guest.candidate.input_layouts import strided


@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (2, 3, 4), (2, 3, 4, 5), (0, 4), (1, 1)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool])
def test_values_are_the_same(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x = torch.randn(shape).to(dtype)
    assert torch.equal(strided(x), x) and strided(x).dtype == dtype


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 4)])
def test_a_read_that_ignores_the_strides_gives_poison(shape: tuple[int, ...]) -> None:
    x = strided(torch.ones(shape))
    assert x.storage_offset() > 0 and x.stride(-1) != 1 and not x.is_contiguous()
    at = torch.as_strided(x, (x.numel(),), (1,), x.storage_offset())
    assert at.isnan().any()


def test_a_vector_has_an_offset() -> None:
    x = strided(torch.ones(5))
    assert x.storage_offset() == 1 and torch.as_strided(x, (6,), (1,), 0)[0].isnan()
