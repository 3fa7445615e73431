"""Read a guest's times, and compare them with the limits of the GPU and the host's own clock."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import quantiles

from kernelquarry.pipeline.sandbox.executor.service import GpuDescription
from kernelquarry.pipeline.sandbox.jobs.timing import TimingReply
from kernelquarry.pipeline.sandbox.observation import MalformedReply
from kernelquarry.pipeline.schema.records import Timed

CONTENDERS = ("eager", "compile", "candidate")
_TOO_FAST = 0.75  # of the slope: a call after a cache flush takes at least as long as one of many in a row
_STEP_US = 25.0  # for a busy host to start a launch, fill or copy, which may bound calls in a row
_MAX_WRONG = 0.01  # share of the candidate's elements; at large sizes, long sums are less precise


def contenders(reply: TimingReply) -> tuple[Timed, ...]:
    """The times of each contender.

    Raises:
        MalformedReply: a contender is missing, or took no time.
    """
    times, left_out = reply.times, reply.left_out
    if times.keys() & left_out.keys() or times.keys() | left_out.keys() != set(CONTENDERS):
        raise MalformedReply(f"times of {sorted(times)}, without {sorted(left_out)}")
    if not all(runs and all(math.isfinite(run) and run > 0 for run in runs) for runs in times.values()):
        raise MalformedReply("no runs, or some that took no time")
    return tuple(_timed(name, times[name]) for name in CONTENDERS if name in times)


def _timed(name: str, runs: Sequence[float]) -> Timed:
    low, middle, high = quantiles(runs, n=4, method="inclusive") if len(runs) > 1 else [runs[0]] * 3
    return Timed(name, middle, low, high, len(runs))


def floor_us(measured: TimingReply, gpu: GpuDescription) -> float:
    """Lower bound in microseconds for any kernel on this GPU.

    The bytes written must reach the memory, except those that fit in the cache. Bytes read do not count, as a module
    may ignore parts of its inputs. Products count at the rate of the GPU's fastest arithmetic, since few products in
    one precision can compute a product in another.
    """
    memory = max(0, measured.written - gpu.cache) / gpu.bandwidth if gpu.bandwidth else 0.0
    arithmetic = measured.flops / gpu.peak if gpu.peak else 0.0
    return 1e6 * max(memory, arithmetic)


def suspicion(contenders: Sequence[Timed], floor: float, slope: float, steps: int, wrong: float) -> str:
    """The reason why the times are implausible; "" if they are plausible.

    Args:
        floor: see `floor_us`.
        slope: microseconds per call of the candidate's program by the host's clock; 0 without a program.
        steps: number of steps in the program, each of which the host must start.
        wrong: share of wrong elements in the candidate's outputs.
    """
    reasons = [
        f"{timed.name} takes {timed.median_us:.1f} us, where the GPU's limits allow no less than {floor:.1f}"
        for timed in contenders
        if timed.median_us < floor
    ]
    least = _TOO_FAST * (slope - _STEP_US * steps)
    reasons += [
        f"the candidate takes {timed.median_us:.1f} us, but {slope:.1f} by the host's clock"
        for timed in contenders
        if timed.name == "candidate" and timed.median_us < least
    ]
    if wrong > _MAX_WRONG:
        reasons.append(f"{100 * wrong:.1f} % of the candidate's values are not the reference's at this size")
    return "; ".join(reasons)
