"""The wall clock's word on how long a program takes: many calls in a row, less a few, by this process's own clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kernelquarry.pipeline.sandbox.protocol import Tensors
from kernelquarry.pipeline.sandbox.test_values import stand_ins

from .guarded_buffers import Arena
from .program import Program
from .replay_program import Device, fill, load, needed, steps

_WARM = 3  # calls before the clock is looked at
_LONG_S = 0.1  # that the shorter row of calls may take
_CALLS = (3, 300)  # in the shorter row: at least, at most


def slope(device: Device, request: Mapping[str, Any], tensors: Tensors) -> tuple[dict[str, Any], Tensors]:
    """Seconds for one call of `request["programs"][0]`, without flushes between the calls: `slope_s`, the least of
    as many slopes as `request["slopes"]` says, since all else that a machine does makes one longer. With none it is
    called once, to see whether it ends.

    Its inputs are drawn as `request["drawn"]` says; its state comes as `state.<name>`, binaries as
    `binary.<sha256>`, constants as `constant.0.<storage>`. Three times as many calls less the calls, over twice the
    calls: what a row of calls costs beside them cancels.

    Raises:
        Fault: a launch failed.
        MalformedReply: the program is not as a guest of ours writes it, or a tensor is missing.
        ValueError: a tensor is another than the program was traced with.
    """
    kernels, (program, *_) = load(device, request, tensors)
    arena = Arena(program, device.memory)
    constants = {storage: needed(tensors, f"constant.0.{storage}") for storage in program.constants}
    fill(program, arena, _values(program, request, tensors, device), constants)
    calls = steps(program, kernels, device, arena)
    _seconds(calls, 1, device)
    if not request["slopes"]:
        return {}, {}
    with device.turn():
        slopes = _slopes(calls, request["slopes"], device)
    return {"slope_s": max(0.0, min(slopes))}, {}


def _slopes(calls: Sequence[Callable[[], Any]], number: int, device: Device) -> list[float]:
    for _ in range(_WARM):
        _seconds(calls, 1, device)
    few, most = _CALLS
    times = min(most, max(few, int(_LONG_S / max(_seconds(calls, 1, device), 1e-9))))
    return [(_seconds(calls, 3 * times, device) - _seconds(calls, times, device)) / (2 * times) for _ in range(number)]


def _values(program: Program, request: Mapping[str, Any], tensors: Tensors, device: Device) -> Tensors:
    drawn = stand_ins(request["drawn"], device.memory)
    values = {f"input.{index}": value for index, value in enumerate(drawn)}
    return values | {name: needed(tensors, name) for name in program.named if name not in values}


def _seconds(calls: Sequence[Callable[[], Any]], times: int, device: Device) -> float:
    device.synchronize()
    started = time.perf_counter()
    for _ in range(times):
        for call in calls:
            call()
    device.synchronize()
    return time.perf_counter() - started
