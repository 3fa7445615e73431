"""Add a timing to a pair if there is a GPU. Timing drops no pair."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from kernelquarry.pipeline.sandbox import Job, Limits, Sandbox
from kernelquarry.pipeline.sandbox.executor.program import Program, read_kernels, read_program
from kernelquarry.pipeline.sandbox.executor.service import ExecutionStatus, Gpus
from kernelquarry.pipeline.sandbox.jobs.timing import TIMING, TimingRequest
from kernelquarry.pipeline.sandbox.observation import MalformedReply
from kernelquarry.pipeline.sandbox.protocol import Tensors
from kernelquarry.pipeline.schema.outcome import Kept, Outcome
from kernelquarry.pipeline.schema.records import Engine, Pair, Timing, Workload
from kernelquarry.transforms.verify.environment import environment
from kernelquarry.transforms.verify.evidence import Rejected
from kernelquarry.transforms.verify.execution import trace
from kernelquarry.transforms.verify.task import Call, Task, input_specs

from .check import contenders, floor_us, suspicion
from .workloads import calls_to_time

_MESSAGE = 500  # characters
_SLOPES = 5  # measurements, of which the minimum counts
_COPIES = 5  # buffers of the candidate, of the references, and of the comparison of their outputs


@dataclass(frozen=True, slots=True)
class TimeSettings:
    elements: int = 1 << 25  # of all inputs of a call; in float32, 2.5 times the cache of an H100
    buffers: int = 4 << 30  # bytes of the candidate; calls with more get a GPU of their own
    limits: Limits = field(default_factory=lambda: Limits(wall_s=180.0, cpu_s=180, memory_mb=16 << 10))  # of each guest


class NotTimed(Exception):
    """A call cannot be timed; a smaller one may be."""


def time(pair: Pair, sandbox: Sandbox, settings: TimeSettings | None = None) -> Outcome[Pair]:
    """Keep the pair, with one timing if the sandbox has a GPU."""
    if sandbox.gpus is None:
        return Kept(pair)
    return Kept(replace(pair, timings=(_timing(pair, sandbox, sandbox.gpus, settings or TimeSettings()),)))


def _timing(pair: Pair, sandbox: Sandbox, gpus: Gpus, settings: TimeSettings) -> Timing:
    """Timing of the first call that can be timed; without contenders if none can."""
    own = pair.workloads[0]
    error = ""
    for workload in calls_to_time(pair.workloads, settings.elements) if pair.shape_general else [own]:
        try:
            timing = _time_call(pair, workload, sandbox, gpus, settings)
            return replace(timing, enlarged=workload != own)
        except NotTimed as reason:
            error = str(reason)
    return Timing(own, False, pair.verdict.engine, (), error[:_MESSAGE], 0.0, 0.0, "", environment(sandbox))


def _time_call(pair: Pair, workload: Workload, sandbox: Sandbox, gpus: Gpus, settings: TimeSettings) -> Timing:
    """Time one call. Raises: NotTimed."""
    traced = None if pair.verdict.engine is Engine.GUEST else _traced(pair, workload, sandbox, gpus, settings)
    request = _request(pair, workload, traced)
    # Guests that run no Python code of a candidate share the GPU: they compile at once, and take turns to measure.
    is_shared = traced is not None and traced.buffers <= settings.buffers
    with gpus.share() if is_shared else gpus.reserve() as ordinal:
        job = Job(TIMING, replace(request, gpu=ordinal), traced.tensors if traced else {}, settings.limits)
        report = sandbox.run(job)
    if report.reply is None:
        raise NotTimed(report.error)
    try:
        measured, timed = report.reply, contenders(report.reply)
    except MalformedReply as error:
        raise NotTimed(f"the guest gave no proper times: {error}") from error
    slope, failed = _slope(gpus, request, traced, report.tensors, settings) if traced else (0.0, "")
    floor = floor_us(measured, gpus.description)
    steps = len(traced.program.steps) if traced else 0
    return Timing(
        workload=workload,
        enlarged=True,
        engine=Engine.TRACE if traced else Engine.GUEST,
        contenders=timed,
        left_out="; ".join(f"{name}: {why}" for name, why in sorted(measured.left_out.items()))[:_MESSAGE],
        floor_us=floor,
        slope_us=slope,
        suspect=failed or suspicion(timed, floor, slope, steps, measured.wrong),
        environment=environment(sandbox),
    )


@dataclass(frozen=True, slots=True)
class _Traced:
    """A candidate's trace of one call."""

    claim: dict[str, Any]  # the program as the guest sent it
    kernels: list[Any]
    tensors: Tensors
    program: Program

    @property
    def buffers(self) -> int:
        """Bytes."""
        return sum(self.program.storages)


def _traced(pair: Pair, workload: Workload, sandbox: Sandbox, gpus: Gpus, settings: TimeSettings) -> _Traced | None:
    """Trace one call; None if the candidate has no trace. Raises: NotTimed."""
    call = Call.of(Task.of_row(pair), workload, 0, "normal")
    try:
        report = trace(call.task, [call.trial], gpus.description.target, sandbox, settings.limits)
    except Rejected as rejected:
        raise NotTimed(rejected.evidence) from rejected
    if report.reply is None or report.reply.load_error:
        raise NotTimed(report.reply.load_error if report.reply else report.error)
    if report.reply.untraceable:
        return None
    try:
        kernels = [*report.reply.kernels]
        (claim,) = report.reply.programs
        program = read_program(claim, len(read_kernels(kernels)))
    except (MalformedReply, ValueError) as error:
        raise NotTimed(f"the candidate's guest gave no proper program: {error}") from error
    tensors = {name: t for name, t in report.tensors.items() if name.startswith(("binary.", "constant."))}
    traced = _Traced(claim, kernels, tensors, program)
    needed, there = _COPIES * traced.buffers, gpus.description.memory
    if 0 < there < needed:
        raise NotTimed(f"needs {needed / 2**30:.0f} GiB, of the GPU's {there / 2**30:.0f}")
    return traced


def _request(pair: Pair, workload: Workload, traced: _Traced | None) -> TimingRequest:
    """The request, for a GPU that is chosen later."""
    task = Task.of_row(pair)
    request = TimingRequest(0, task.reference_source, workload.args, workload.kwargs, input_specs(workload))
    if traced is None:
        return replace(request, candidate=task.candidate_source)
    return replace(request, program=traced.claim, kernels=tuple(traced.kernels))


def _slope(
    gpus: Gpus, request: TimingRequest, traced: _Traced, state: Tensors, settings: TimeSettings
) -> tuple[float, str]:
    """Microseconds per call by the executor's clock; or 0, and the reason."""
    replay = {"kernels": traced.kernels, "programs": [traced.claim], "slopes": _SLOPES}
    replay["drawn"] = [asdict(spec) for spec in request.inputs]
    execution = gpus.run(replay, {**state, **traced.tensors}, settings.limits.wall_s)
    if execution.status != ExecutionStatus.DONE:
        return 0.0, f"the executor could not replay it: {execution.error}"
    return 1e6 * execution.reply["slope_s"], ""
