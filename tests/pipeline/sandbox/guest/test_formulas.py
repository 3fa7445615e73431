"""Other formulas compute the same numbers, and may make something else of infinities, or of what is small."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from kernelquarry.pipeline.sandbox.guest.verifying.formulas import decomposed, textbook


def widened(x: Tensor) -> Tensor:
    return F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=True)


def by_parts(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    with torch.no_grad(), decomposed():
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
    assert torch.allclose(by_parts(function, x.clone()), function(x.clone()), atol=1e-5)


def test_infinities_may_differ() -> None:
    x = torch.zeros(1, 1, 2, 2)
    x[0, 0, 0, 0] = torch.inf
    assert widened(x).isnan().sum() < by_parts(widened, x).isnan().sum()


CANCELLING: dict[str, Callable[[Tensor], Tensor]] = {
    "expm1": torch.expm1,
    "expm1_": lambda x: x.expm1_(),
    "log1p": lambda x: torch.log1p(x.abs()),
    "sinh": torch.sinh,
    "tanh": torch.tanh,
    "tanh_": lambda x: x.tanh_(),
    "asinh": torch.asinh,
    "atanh": lambda x: torch.atanh(x / 8),
    "elu": lambda x: F.elu(x, 0.7),
    "elu_": lambda x: F.elu(x, 0.7, inplace=True),
    "selu": F.selu,
    "celu": lambda x: F.celu(x, 0.7),
}
ELSEWHERE: dict[str, Callable[[Tensor], Tensor]] = {
    "softplus": lambda x: F.softplus(x - 18, 0.5, 15),
    "mish": lambda x: F.mish(x - 18),
    "logsigmoid": lambda x: F.logsigmoid(x + 18),
}


@pytest.mark.parametrize("function", (CANCELLING | ELSEWHERE).values(), ids=CANCELLING | ELSEWHERE)
def test_textbooks_compute_the_same_to_a_roundoff_of_one(function: Callable[[Tensor], Tensor]) -> None:
    x = torch.randn(1000, generator=torch.Generator().manual_seed(0))
    with textbook():
        written = function(x.clone())
    assert torch.allclose(written, function(x.clone()), rtol=1e-6, atol=1e-5)
    assert not torch.equal(written, function(x.clone()))


@pytest.mark.parametrize("function", CANCELLING.values(), ids=CANCELLING)
def test_textbooks_lose_what_is_small(function: Callable[[Tensor], Tensor]) -> None:
    x = torch.full((100,), -(2.0**-30))
    with textbook():
        written = function(x.clone())
    assert (written - function(x.clone())).abs().min() > 2.0**-31


def test_textbooks_leave_integers_to_pytorch() -> None:
    expected = torch.tanh(torch.arange(5))
    with textbook():
        assert torch.equal(torch.tanh(torch.arange(5)), expected)
