"""From a pair to the same pair with its timing, where there is a GPU. No pair is dropped for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kernelquarry.pipeline.sandbox import Job, Limits, Sandbox
from kernelquarry.pipeline.sandbox.executor.program import Program, read_kernels, read_program
from kernelquarry.pipeline.sandbox.executor.service import ExecutionStatus, Gpus
from kernelquarry.pipeline.sandbox.jobs.timing import TIMING
from kernelquarry.pipeline.sandbox.observation import MalformedReply, expect
from kernelquarry.pipeline.sandbox.protocol import Tensors
from kernelquarry.pipeline.schema.outcome import Kept, Outcome
from kernelquarry.pipeline.schema.records import CANDIDATE_ENTRY_POINT, ENTRY_POINT, Engine, Pair, Timing, Workload
from kernelquarry.transforms.verify.environment import environment
from kernelquarry.transforms.verify.execution import trace
from kernelquarry.transforms.verify.task import Call, Task, describe_inputs

from .check import floor_us, read_measured, suspicion
from .workloads import calls_to_time

_MESSAGE = 500  # characters
_SLOPES = 5  # by the clock, of which the least counts


@dataclass(frozen=True, slots=True)
class TimeSettings:
    elements: int = 1 << 25  # of a call's inputs, all together; in float32, two and a half times an H100's cache
    buffers: int = 4 << 30  # bytes of the candidate's; the reference, compiled and not, has as much again each
    limits: Limits = field(default_factory=lambda: Limits(wall_s=180.0, cpu_s=180, memory_mb=16 << 10))  # of each guest


class NotTimed(Exception):
    """A call that cannot be timed, and why: a smaller one may be."""


def time(pair: Pair, sandbox: Sandbox, settings: TimeSettings | None = None) -> Outcome[Pair]:
    """Kept, with one timing if the sandbox has a GPU."""
    if sandbox.gpus is None:
        return Kept(pair)
    return Kept(replace(pair, timings=(_timing(pair, sandbox, sandbox.gpus, settings or TimeSettings()),)))


def _timing(pair: Pair, sandbox: Sandbox, gpus: Gpus, settings: TimeSettings) -> Timing:
    """Of the first call that can be timed; without contenders if none can."""
    own = pair.workloads[0]
    why = ""
    for workload in calls_to_time(pair.workloads, settings.elements) if pair.shape_general else [own]:
        try:
            timing = _time_call(pair, workload, sandbox, gpus, settings)
            return replace(timing, enlarged=workload != own)
        except NotTimed as reason:
            why = str(reason)
    return Timing(own, False, pair.verdict.engine, (), why[:_MESSAGE], 0.0, 0.0, "", environment(sandbox))


def _time_call(pair: Pair, workload: Workload, sandbox: Sandbox, gpus: Gpus, settings: TimeSettings) -> Timing:
    """Raises: NotTimed."""
    traced = None if pair.verdict.engine is Engine.GUEST else _traced(pair, workload, sandbox, gpus, settings)
    request = _request(pair, workload, traced)
    # Guests in which no Python of a candidate's runs compile side by side, and take turns at the clock.
    with gpus.share() if traced else gpus.reserve() as ordinal:
        job = Job(TIMING, request | {"gpu": ordinal}, traced.tensors if traced else {}, settings.limits)
        report = sandbox.run(job)
    if report.reply is None:
        raise NotTimed(report.error)
    try:
        measured = read_measured(report.reply)
    except MalformedReply as error:
        raise NotTimed(f"the guest gave no proper times: {error}") from error
    slope, failed = _slope(gpus, request, traced, report.tensors, settings) if traced else (0.0, "")
    floor = floor_us(measured, gpus.description)
    steps = len(traced.program.steps) if traced else 0
    return Timing(
        workload=workload,
        enlarged=True,
        engine=Engine.TRACE if traced else Engine.GUEST,
        contenders=measured.contenders,
        left_out="; ".join(f"{name}: {why}" for name, why in sorted(measured.left_out.items()))[:_MESSAGE],
        floor_us=floor,
        slope_us=slope,
        suspect=failed or suspicion(measured.contenders, floor, slope, steps, measured.wrong),
        environment=environment(sandbox),
    )


@dataclass(frozen=True, slots=True)
class _Traced:
    """A candidate's program for one call, as its guest wrote it, and as the host read it."""

    claim: dict[str, Any]
    kernels: list[Any]
    tensors: Tensors
    program: Program


def _traced(pair: Pair, workload: Workload, sandbox: Sandbox, gpus: Gpus, settings: TimeSettings) -> _Traced | None:
    """None if what the candidate does cannot be told as a program. Raises: NotTimed."""
    call = Call.of(Task.of_row(pair), workload, 0, "normal")
    report = trace(call.task, [call.trial], gpus.description.target, sandbox, settings.limits)
    if report.reply is None or "load_error" in report.reply:
        raise NotTimed(report.error if report.reply is None else str(report.reply["load_error"]))
    if "untraceable" in report.reply:
        return None
    try:
        kernels = expect(report.reply.get("kernels"), list)
        (claim,) = expect(report.reply.get("programs"), list)
        program = read_program(claim, len(read_kernels(kernels)))
    except (MalformedReply, ValueError) as error:
        raise NotTimed(f"the candidate's guest gave no proper program: {error}") from error
    if sum(program.storages) > settings.buffers:
        raise NotTimed(f"needs {sum(program.storages) / 2**30:.1f} GiB")
    tensors = {name: t for name, t in report.tensors.items() if name.startswith(("binary.", "constant."))}
    return _Traced(claim, kernels, tensors, program)


def _request(pair: Pair, workload: Workload, traced: _Traced | None) -> dict[str, Any]:
    """Of the guest `timing`."""
    request: dict[str, Any] = {
        "reference": pair.python_code,
        "entry_points": {"reference": ENTRY_POINT, "candidate": CANDIDATE_ENTRY_POINT},
        "init_args": pair.init_args,
        "args": workload.args,
        "kwargs": workload.kwargs,
        "drawn": describe_inputs(workload),
    }
    if traced is None:
        return request | {"candidate": pair.triton_code}
    return request | {"program": traced.claim, "kernels": traced.kernels}


def _slope(
    gpus: Gpus, request: Mapping[str, Any], traced: _Traced, state: Tensors, settings: TimeSettings
) -> tuple[float, str]:
    """Microseconds a call by the executor's clock, or 0 and why there is no such number."""
    asked = {"kernels": traced.kernels, "programs": [traced.claim], "drawn": request["drawn"], "slopes": _SLOPES}
    execution = gpus.run(asked, {**state, **traced.tensors}, settings.limits.wall_s)
    if execution.status != ExecutionStatus.DONE:
        return 0.0, f"the executor could not replay it: {execution.error}"
    return 1e6 * execution.reply["slope_s"], ""
