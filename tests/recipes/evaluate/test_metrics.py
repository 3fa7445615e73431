"""Metrics of an evaluation against values counted by hand."""

from __future__ import annotations

from itertools import combinations
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelquarry.recipes.evaluate.metrics import Estimate, estimate, fast_p, mean_rate, pass_at, pass_rates


@given(st.integers(1, 7), st.data())
def test_pass_at_k_is_the_mean_over_all_choices(samples: int, data: st.DataObject) -> None:
    flags = data.draw(st.lists(st.booleans(), min_size=samples, max_size=samples))
    k = data.draw(st.integers(1, samples))
    by_hand = fmean(any(chosen) for chosen in combinations(flags, k))
    assert pass_at(samples, sum(flags), k) == pytest.approx(by_hand)


def test_pass_at_k_needs_k_samples() -> None:
    with pytest.raises(ValueError, match="pass@5 of 3"):
        pass_at(3, 1, 5)
    assert list(pass_rates([[True] * 10, [False] * 7])) == ["pass@1", "pass@5"]


def test_an_interval_contains_its_mean_and_is_reproducible() -> None:
    found = estimate([0.0, 1.0, 1.0, 0.0, 1.0] * 8)
    assert found.low < found.value == 0.6 < found.high
    assert found.low > 0.4 and found.high < 0.8
    assert estimate([0.0, 1.0, 1.0, 0.0, 1.0] * 8) == found
    assert estimate([1.0] * 5) == Estimate(1.0, 1.0, 1.0)
    assert str(found) == f"60.0 ({100 * found.low:.1f}-{100 * found.high:.1f})"


def test_fast_p_counts_right_first_answers_faster_than_p() -> None:
    right = [[True, False], [True, True], [False, True], [True, True]]
    speedups = [[1.2, 0.0], [0.5, 9.0], [0.0, 9.0], [2.0, 2.0]]
    found = {name: value.value for name, value in fast_p(right, speedups).items()}
    assert found == {"fast_0": 0.75, "fast_0.8": 0.5, "fast_1": 0.5, "fast_1.5": 0.25, "fast_2": 0.0}


def test_a_mean_rate_averages_over_problems() -> None:
    assert mean_rate([[True, False], [True, True, True, True]]).value == 0.75
