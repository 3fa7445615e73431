"""Wall-clock time of a program, from the difference between a longer and a shorter run of calls."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kernelquarry.pipeline.sandbox.jobs.calls import InputSpec
from kernelquarry.pipeline.sandbox.observation import require_tensor
from kernelquarry.pipeline.sandbox.protocol import Tensors
from kernelquarry.pipeline.sandbox.timing_inputs import draw_timing_inputs

from .guarded_buffers import Arena
from .program import Program
from .replay_program import Device, fill, load, steps

_WARM = 3  # calls before the measurement
_LONG_S = 0.1  # seconds that the shorter run of calls may take
_CALLS = (3, 300)  # in the shorter run: at least, at most


def slope(device: Device, request: Mapping[str, Any], tensors: Tensors) -> tuple[dict[str, Any], Tensors]:
    """Measure `slope_s`, the seconds for one call of `request["programs"][0]`, without cache flushes between calls.

    A slope is (time of 3n calls - time of n calls) / 2n, in which the fixed cost of a run cancels. The result is the
    least of `request["slopes"]` slopes, since other work on the machine can only add time. If that number is 0, the
    program is called once, to see whether it ends, and nothing is returned.

    The inputs are drawn from the specifications `request["drawn"]`; the state comes as `state.<name>`, binaries as
    `binary.<sha256>`, constants as `constant.0.<storage>`.

    Raises:
        Fault: a launch failed.
        MalformedReply: the program does not have the tracer's form, or a tensor is missing.
        ValueError: a tensor has another shape or dtype than the program was traced with.
    """
    kernels, (program, *_) = load(device, request, tensors)
    arena = Arena(program, device.memory)
    constants = {storage: require_tensor(tensors, f"constant.0.{storage}") for storage in program.constants}
    fill(program, arena, _values(program, request, tensors, device), constants)
    calls = steps(program, kernels, device, arena)
    _seconds(calls, 1, device)
    if not request["slopes"]:
        return {}, {}
    with device.exclusive_use():
        slopes = _slopes(calls, request["slopes"], device)
    return {"slope_s": max(0.0, min(slopes))}, {}


def _slopes(calls: Sequence[Callable[[], Any]], number: int, device: Device) -> list[float]:
    for _ in range(_WARM):
        _seconds(calls, 1, device)
    few, most = _CALLS
    times = min(most, max(few, int(_LONG_S / max(_seconds(calls, 1, device), 1e-9))))
    return [(_seconds(calls, 3 * times, device) - _seconds(calls, times, device)) / (2 * times) for _ in range(number)]


def _values(program: Program, request: Mapping[str, Any], tensors: Tensors, device: Device) -> Tensors:
    drawn = draw_timing_inputs([InputSpec(**spec) for spec in request["drawn"]], device.memory)
    values = {f"input.{index}": value for index, value in enumerate(drawn)}
    return values | {name: require_tensor(tensors, name) for name in program.named if name not in values}


def _seconds(calls: Sequence[Callable[[], Any]], times: int, device: Device) -> float:
    device.synchronize()
    started = time.perf_counter()
    for _ in range(times):
        for call in calls:
            call()
    device.synchronize()
    return time.perf_counter() - started
