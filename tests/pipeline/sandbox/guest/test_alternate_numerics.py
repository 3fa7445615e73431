"""Alternate formulas compute the same numbers; they may differ for infinities and small results."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from kernelquarry.pipeline.sandbox.guest.candidate.alternate_numerics import AlternateTieBreaks, decomposed, textbook


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
def test_decompositions_give_the_same_numbers(function: Callable[[Tensor], Tensor]) -> None:
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
FAR_FROM_ZERO: dict[str, Callable[[Tensor], Tensor]] = {
    "softplus": lambda x: F.softplus(x - 18, 0.5, 15),
    "mish": lambda x: F.mish(x - 18),
    "logsigmoid": lambda x: F.logsigmoid(x + 18),
    "exp": torch.exp,
    "softmax": lambda x: F.softmax(x, -1),
    "log_softmax": lambda x: F.log_softmax(x, -1),
}


@pytest.mark.parametrize("function", (CANCELLING | FAR_FROM_ZERO).values(), ids=CANCELLING | FAR_FROM_ZERO)
def test_textbook_formulas_are_right_to_a_roundoff_of_one(function: Callable[[Tensor], Tensor]) -> None:
    x = torch.randn(1000, generator=torch.Generator().manual_seed(0))
    with textbook():
        written = function(x.clone())
    assert torch.allclose(written, function(x.clone()), rtol=1e-6, atol=1e-5)
    assert not torch.equal(written, function(x.clone()))


@pytest.mark.parametrize("function", CANCELLING.values(), ids=CANCELLING)
def test_textbook_formulas_lose_small_results(function: Callable[[Tensor], Tensor]) -> None:
    x = torch.full((100,), -(2.0**-30))
    with textbook():
        written = function(x.clone())
    assert (written - function(x.clone())).abs().min() > 2.0**-31


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_textbook_formulas_take_all_floats(dtype: torch.dtype) -> None:
    x = torch.randn(100, dtype=dtype)
    with textbook():
        written = torch.tanh(x)
    assert written.dtype == dtype and torch.allclose(written, torch.tanh(x), atol=0.01)


@pytest.mark.parametrize("function", [F.softmax, F.log_softmax])
def test_textbook_rows_keep_what_is_masked(function: Callable[..., Tensor]) -> None:
    x = torch.tensor([[1.0, -torch.inf, 2.0], [-torch.inf] * 3])
    with textbook():
        written, empty = function(x, -1), function(torch.empty(2, 0), -1)
    assert torch.allclose(written, function(x, -1), equal_nan=True) and empty.shape == (2, 0)


def test_textbook_formulas_leave_integers_to_pytorch() -> None:
    expected = torch.tanh(torch.arange(5))
    with textbook():
        assert torch.equal(torch.tanh(torch.arange(5)), expected)


EQUALS = torch.tensor([[1.0, 3.0, 3.0, 2.0, 3.0], [5.0, 4.0, 1.0, 2.0, 3.0]])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.argmax(-1),
        lambda x: (-x).argmin(-1),
        lambda x: x.max(-1).indices,
        lambda x: x.max(-1, keepdim=True).indices[:, 0],
        lambda x: torch.min(-x, dim=1)[1],
        lambda x: x.topk(1)[1][:, 0],
        lambda x: x.argsort(descending=True)[:, 0],
        lambda x: x.t().argmax(0),
    ],
)
def test_ties_are_broken_by_another_index(function: Callable[[Tensor], Tensor]) -> None:
    first = function(EQUALS)
    with AlternateTieBreaks([]):
        other = function(EQUALS)
    assert other[0] != first[0] and EQUALS[0, other[0]] == EQUALS[0, first[0]]
    assert other[1] == first[1] == 0


@pytest.mark.parametrize("function", [lambda x: x.argmax(-1), lambda x: x.max(-1)[1], lambda x: x.min(-1)[1]])
def test_the_first_of_equal_inputs_is_the_maximum(function: Callable[[Tensor], Tensor]) -> None:
    with AlternateTieBreaks([EQUALS, torch.arange(3)]) as mode:
        assert torch.equal(function(EQUALS), function(EQUALS.clone()))
    assert not mode.indirect


@pytest.mark.parametrize(
    ("function", "values", "others"),
    [
        (torch.floor, [1.0, 1.000001, 1.2, -2.000001], [0.0, 0.0, 1.0, -2.0]),
        (torch.ceil, [1.000001, 0.999999, 1.5], [1.0, 2.0, 2.0]),
        (torch.round, [0.5, 1.499999, 1.2], [0.0, 2.0, 1.0]),
        (lambda x: x.to(torch.int32), [1.999999, 2.000001, 2.5], [2.0, 1.0, 2.0]),
        (lambda x: x.long(), [1.0, 2.0, 3.0], [1.0, 2.0, 3.0]),
        (lambda x: x.to(torch.float16), [1.0, 2.0, 3.5], [1.0, 2.0, 3.5]),
    ],
)
def test_computed_values_near_a_boundary_are_rounded_the_other_way(
    function: Callable[[Tensor], Tensor], values: list[float], others: list[float]
) -> None:
    x = torch.tensor(values)
    with AlternateTieBreaks([]):
        assert function(x).tolist() == others
    with AlternateTieBreaks([x]):
        assert torch.equal(function(x), function(x.clone())), "an input has no error"


def test_ties_over_all_axes_are_broken_by_another_index() -> None:
    with AlternateTieBreaks([EQUALS[1]]) as mode:
        assert EQUALS[:1].argmax() == 2 and EQUALS.argmax() == 5
        assert EQUALS.sort(stable=True, dim=-1)[1].shape == EQUALS.shape
    assert mode.indirect, "a part is no input"


def test_ties_of_computed_values_are_indirect() -> None:
    with AlternateTieBreaks([EQUALS]) as mode:
        EQUALS.argmax(-1), EQUALS.reshape(5, 2).argmax(0), torch.topk(EQUALS, 2)
    assert not mode.indirect
    with AlternateTieBreaks([EQUALS]) as mode:
        (EQUALS + 1).argmax(-1)
    assert mode.indirect
