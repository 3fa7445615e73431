"""Statistics of a set of pairs."""

from __future__ import annotations

import pytest
from factories import make_pair, make_pairs, make_timing, make_verdict

from kernelquarry.pipeline.dataset.summary import summarise, tally
from kernelquarry.pipeline.schema.records import Purity


def test_shares_and_tallies() -> None:
    summary = summarise(make_pairs(20, ("train", "test")))
    assert (summary.pairs, summary.pure, summary.shape_general) == (20, 0.8, 13 / 20)
    assert summary.licences == (("MIT", 10), ("Apache-2.0", 5), ("BSD-3-Clause", 5))
    assert summary.operators[:2] == (("add", 20), ("mul", 20))
    assert summary.extern_operators == (("aten.convolution", 4),)
    assert [bar.count for bar in summary.kernels] == [5, 5, 5, 5, 0, 0, 0, 0, 0]
    assert len(summary.environments) == 1


def test_an_empty_set_has_a_summary() -> None:
    summary = summarise([])
    assert (summary.pairs, summary.pure, summary.median_triton_lines) == (0, 0.0, 0)


@pytest.mark.parametrize(
    ("ratio", "label"),
    [(0.0, "3·10⁻⁶"), (1e-9, "3·10⁻⁶"), (1e-3, "10⁻³"), (2e-3, "3·10⁻³"), (0.9, "1"), (1.0, "1")],
)
def test_errors_fall_into_the_bar_of_their_size(ratio: float, label: str) -> None:
    bars = summarise([make_pair(verdict=make_verdict(ratio))]).errors
    assert [bar.label for bar in bars if bar.count] == [label]


def test_tallies_break_ties_by_name() -> None:
    assert tally([Purity.PURE, Purity.MIXED]) == (("mixed", 1), ("pure", 1))


def test_no_speeds_without_times() -> None:
    assert summarise(make_pairs(2)).speeds is None
    assert summarise([make_pair(timings=(make_timing(0.0, 0.0, 0.0, left_out="out of memory"),))]).speeds is None


def test_speeds_leave_out_suspect_and_untimed_pairs() -> None:
    timings = [make_timing(), make_timing(eager=50.0, enlarged=False), make_timing(compiled=0.0)]
    timings.append(make_timing(candidate=0.1, suspect="too good"))
    found = summarise([make_pair(timings=(timing,)) for timing in timings]).speeds
    assert found is not None and (found.timed, found.enlarged, found.suspects) == (4, 3, 1)
    eager, compiled = found.over
    assert (eager.pairs, eager.faster, eager.median) == (3, 2 / 3, 3.0)
    assert (compiled.pairs, compiled.faster, compiled.median) == (2, 1.0, 2.0)


@pytest.mark.parametrize(
    ("ratio", "label"),
    [(0.01, "0.25"), (0.5, "0.5"), (1.0, "1"), (1.01, "1.4"), (2.0, "2"), (8.0, "8"), (8.1, "> 8"), (900.0, "> 8")],
)
def test_speedups_fall_into_the_bar_of_their_size(ratio: float, label: str) -> None:
    found = summarise([make_pair(timings=(make_timing(eager=100 * ratio),))]).speeds
    assert found is not None
    assert [bar.label for bar in found.over[0].bars if bar.count] == [label]
