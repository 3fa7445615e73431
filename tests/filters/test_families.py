"""Rows of held-out operator families."""

from __future__ import annotations

import pytest

from kernelquarry.filters.families import HELD_OUT_PAIRS, is_held_out


@pytest.mark.parametrize("name", ["aten.cumprod", "aten::cumprod.out", "cumprod"])
def test_an_operator_is_held_out_by_any_of_its_names(name: str) -> None:
    assert is_held_out(["aten.mul", name])


def test_a_pair_is_held_out_and_its_operators_are_not() -> None:
    first, second = sorted(HELD_OUT_PAIRS[0])
    assert is_held_out([first, "mul", second])
    assert not is_held_out([first, "mul"]) and not is_held_out([second])
