"""Comparison of the states that two constructors leave."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from kernelquarry.pipeline.sandbox.guest.candidate.module_setup import digests
from kernelquarry.pipeline.sandbox.jobs.calls import StateEntry
from kernelquarry.transforms.verify.reference_run import _state_difference


def state(value: Tensor) -> dict[str, StateEntry]:
    module = nn.Module()
    module.register_buffer("value", value)
    return digests(module)


VALUE = torch.linspace(-1.0, 2.0, 100).reshape(4, 25)


def test_last_bits_may_differ() -> None:
    near = torch.nextafter(VALUE, torch.tensor(9.0))
    assert state(near) != state(VALUE)
    assert _state_difference(state(VALUE), state(near)) == ""


@pytest.mark.parametrize(
    "other",
    [
        VALUE * 1.01,
        VALUE + 0.01,
        VALUE.flip(0),
        VALUE.t().contiguous().reshape(4, 25),
        torch.where(VALUE > 1.99, 1.9, VALUE),
        VALUE.reshape(25, 4),
        VALUE.double(),
        VALUE.half(),
        torch.where(VALUE > 1.99, torch.nan, VALUE),
    ],
)
def test_values_and_layouts_may_not_differ(other: Tensor) -> None:
    assert _state_difference(state(VALUE), state(other)) == "1 entries differ: value"


def test_integers_must_be_equal() -> None:
    large = torch.arange(1_000_000, 1_000_100)
    assert _state_difference(state(large), state(large)) == ""
    assert _state_difference(state(large), state(large + 1)) != ""


@pytest.mark.parametrize("claimed", [{}, {"other": StateEntry((4, 25), "float32", "")}])
def test_another_state_differs(claimed: dict[str, StateEntry]) -> None:
    assert _state_difference(state(VALUE), claimed) != ""
    near = state(torch.nextafter(VALUE, torch.tensor(9.0)))
    assert _state_difference(state(VALUE), {"value": replace(near["value"], sums=())}) != ""
