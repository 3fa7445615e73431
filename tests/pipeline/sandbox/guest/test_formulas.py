"""Decompositions compute the same numbers by other formulas, and may make something else of infinities."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from kernelquarry.pipeline.sandbox.guest.verifying.formulas import Decomposed


def widened(x: Tensor) -> Tensor:
    return F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=True)


def decomposed(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    with torch.no_grad(), Decomposed():
        return function(x)


@pytest.mark.parametrize(
    "function",
    [
        widened,
        lambda x: F.conv2d(x, x[:1, :, :2, :2]),
        lambda x: F.layer_norm(x, x.shape[-1:]),
        lambda x: F.scaled_dot_product_attention(x, x, x),
        lambda x: F.max_pool2d(x.exp_(), 2),
        lambda x: F.relu(x + 1.0, inplace=True),
    ],
)
def test_numbers_are_the_same(function: Callable[[Tensor], Tensor]) -> None:
    x = torch.randn(2, 3, 4, 4)
    assert torch.allclose(decomposed(function, x.clone()), function(x.clone()), atol=1e-5)


def test_infinities_may_differ() -> None:
    x = torch.zeros(1, 1, 2, 2)
    x[0, 0, 0, 0] = torch.inf
    assert widened(x).isnan().sum() < decomposed(widened, x).isnan().sum()
