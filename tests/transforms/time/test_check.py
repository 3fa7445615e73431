"""Validation of a guest's times."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kernelquarry.pipeline.sandbox.executor.service import GpuDescription
from kernelquarry.pipeline.sandbox.jobs.timing import TimingReply
from kernelquarry.pipeline.sandbox.observation import MalformedReply
from kernelquarry.pipeline.schema.records import Timed
from kernelquarry.transforms.time.check import contenders, floor_us, suspicion

GPU = GpuDescription("a double", "sm_90", "1", bandwidth=3e12, peak=1e15, cache=50_000_000)
TIMES = {"eager": (30.0, 31.0, 50.0, 29.0), "candidate": (20.0, 10.0, 30.0), "compile": (15.0,)}
REPLY = TimingReply(TIMES, {}, written=350_000_000, flops=0, wrong=0.0)


def of(candidate: float, eager: float = 300.0) -> tuple[Timed, ...]:
    return tuple(
        Timed(name, median, median, median, 50) for name, median in (("eager", eager), ("candidate", candidate))
    )


def test_medians_and_quartiles_in_one_order() -> None:
    eager, compiled, candidate = contenders(REPLY)
    assert (eager.name, eager.median_us, eager.runs) == ("eager", 30.5, 4)
    assert eager.low_us < 30.5 < eager.high_us
    assert compiled == Timed("compile", 15.0, 15.0, 15.0, 1)
    assert (candidate.low_us, candidate.median_us, candidate.high_us) == (15.0, 20.0, 25.0)


@pytest.mark.parametrize(
    "changed",
    [
        {"times": {}},
        {"times": {"eager": (1.0,), "candidate": (1.0,)}},
        {"times": TIMES | {"other": (1.0,)}},
        {"times": TIMES | {"candidate": ()}},
        {"times": TIMES | {"candidate": (0.0,)}},
        {"times": TIMES | {"candidate": (float("nan"),)}},
        {"left_out": {"compile": "why"}},
    ],
)
def test_malformed_times_are_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(MalformedReply):
        contenders(replace(REPLY, **changed))


def test_a_missing_contender_has_a_reason() -> None:
    times = {name: runs for name, runs in TIMES.items() if name != "compile"}
    found = contenders(replace(REPLY, times=times, left_out={"compile": "no compiler"}))
    assert [timed.name for timed in found] == ["eager", "candidate"]


def test_the_floor_is_the_time_to_write_or_compute() -> None:
    assert floor_us(REPLY, GPU) == pytest.approx(100.0)  # 300 MB at 3 TB/s
    assert floor_us(replace(REPLY, flops=10**12), GPU) == pytest.approx(1000.0)
    assert floor_us(replace(REPLY, written=4_000), GPU) == 0.0
    assert floor_us(REPLY, GpuDescription("unknown", "sm_90", "1")) == 0.0


@pytest.mark.parametrize(
    ("candidate", "slope", "steps"),
    [
        (100.0, 95.0, 1),  # bound by memory: the same with and without flushes
        (100.0, 30.0, 1),  # the cache holds it all
        (100.0, 120.0, 1),  # clocks were lower in a row
        (4.1, 18.4, 1),  # bound by launches: the host is ahead after a flush, and not in a row
        (30.0, 90.0, 10),
        (100.0, 0.0, 1),  # no program
    ],
)
def test_honest_times_are_not_suspect(candidate: float, slope: float, steps: int) -> None:
    assert suspicion(of(candidate), 0.0, slope, steps, 0.0) == ""


def test_times_that_are_too_small_are_suspect() -> None:
    assert "by the host's clock" in suspicion(of(50.0), 0.0, 95.0, 1, 0.0)
    assert "candidate takes 50.0 us" in suspicion(of(50.0), 60.0, 0.0, 0, 0.0)
    assert "eager takes 50.0 us" in suspicion(of(100.0, eager=50.0), 60.0, 95.0, 1, 0.0)


def test_wrong_values_of_a_large_call_are_suspect() -> None:
    assert "2.0 % of the candidate's values" in suspicion(of(100.0), 0.0, 95.0, 1, 0.02)
    assert suspicion(of(100.0), 0.0, 95.0, 1, 0.001) == ""
