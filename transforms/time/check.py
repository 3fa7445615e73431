"""What a guest says of times, and whether it fits what the host knows: a claim below what a GPU can do is no time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import quantiles
from typing import Any

from kernelquarry.pipeline.sandbox.executor.service import GpuDescription
from kernelquarry.pipeline.sandbox.observation import MalformedReply, expect
from kernelquarry.pipeline.schema.records import Timed

CONTENDERS = ("eager", "compile", "candidate")
_TOO_FAST = 0.75  # of the slope: a call after a flush takes at least as long as one of many in a row
_STEP_US = 25.0  # that starting a launch, a fill or a copy may take a busy host: calls in a row may be bound by it
_WRONG = 0.01  # share of the candidate's elements that may be off at this size, where sums are long


@dataclass(frozen=True, slots=True)
class Measured:
    """A guest's reply, of the form that it must have (`guest/timing.py`)."""

    times: Mapping[str, Sequence[float]]  # microseconds of each run, by contender
    left_out: Mapping[str, str]
    written: int  # bytes
    flops: int
    wrong: float  # share of the candidate's elements

    @property
    def contenders(self) -> tuple[Timed, ...]:
        return tuple(_timed(name, self.times[name]) for name in CONTENDERS if name in self.times)


def read_measured(reply: Mapping[str, Any]) -> Measured:
    """Raises: MalformedReply."""
    times = {name: _times(runs) for name, runs in expect(reply.get("times"), dict).items()}
    left_out = {name: expect(why, str) for name, why in expect(reply.get("left_out"), dict).items()}
    if times.keys() & left_out.keys() or times.keys() | left_out.keys() != set(CONTENDERS):
        raise MalformedReply(f"times of {sorted(times)}, without {sorted(left_out)}")
    written, flops = (expect(reply.get(name), int) for name in ("written", "flops"))
    return Measured(times, left_out, written, flops, float(expect(reply.get("wrong"), float)))


def _times(claim: Any) -> list[float]:
    runs = [expect(run, float) for run in expect(claim, list)]
    if not runs or not all(math.isfinite(run) and run > 0 for run in runs):
        raise MalformedReply("no runs, or some that took no time")
    return runs


def _timed(name: str, runs: Sequence[float]) -> Timed:
    low, middle, high = quantiles(runs, n=4, method="inclusive") if len(runs) > 1 else [runs[0]] * 3
    return Timed(name, middle, low, high, len(runs))


def floor_us(measured: Measured, gpu: GpuDescription) -> float:
    """Microseconds in which no kernel on this GPU can do it.

    What is written must reach the memory, but for as much as the cache may still hold at the end. What is read is left
    out, as a module may look at a part of its inputs. The products are held against the fastest arithmetic that the GPU
    has, as there are ways to make a product of others in few of them.
    """
    memory = max(0, measured.written - gpu.cache) / gpu.bandwidth if gpu.bandwidth else 0.0
    arithmetic = measured.flops / gpu.peak if gpu.peak else 0.0
    return 1e6 * max(memory, arithmetic)


def suspicion(contenders: Sequence[Timed], floor: float, slope: float, steps: int, wrong: float) -> str:
    """Why the numbers do not fit together, "" if they do.

    Args:
        floor: see `floor_us`.
        slope: microseconds a call of the candidate's program, by the host's own clock; 0 if there is none.
        steps: of the program; each may take the host some time to start.
        wrong: share of the candidate's elements that are off.
    """
    found = [
        f"{timed.name} takes {timed.median_us:.1f} us, where the GPU's limits allow no less than {floor:.1f}"
        for timed in contenders
        if timed.median_us < floor
    ]
    least = _TOO_FAST * (slope - _STEP_US * steps)
    found += [
        f"the candidate takes {timed.median_us:.1f} us, but {slope:.1f} by the host's clock"
        for timed in contenders
        if timed.name == "candidate" and timed.median_us < least
    ]
    if wrong > _WRONG:
        found.append(f"{100 * wrong:.1f} % of the candidate's values are not the reference's at this size")
    return "; ".join(found)
