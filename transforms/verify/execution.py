"""Run a candidate's trials on a GPU: trace them in a guest without a GPU, and replay the traces in the executor.

The executor runs no code of the candidate other than its compiled kernels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import torch
from torch import Tensor

from kernelquarry.pipeline.sandbox import Job, Limits, Report, Sandbox
from kernelquarry.pipeline.sandbox.executor.program import Kernel, Program, read_kernels, read_program
from kernelquarry.pipeline.sandbox.executor.service import Execution, ExecutionStatus
from kernelquarry.pipeline.sandbox.jobs.calls import ObservedCall
from kernelquarry.pipeline.sandbox.jobs.codegen import ENTRY
from kernelquarry.pipeline.sandbox.jobs.run_trials import TrialsReply
from kernelquarry.pipeline.sandbox.jobs.trace import TRACE, TracedCall, TraceReply, TraceRequest
from kernelquarry.pipeline.sandbox.kernel_cache import Binary
from kernelquarry.pipeline.sandbox.observation import MalformedReply
from kernelquarry.pipeline.sandbox.protocol import Tensors
from kernelquarry.pipeline.schema.reasons import Reason

from .compiling import compile_sources
from .evidence import InputRejected, Rejected, reply_of
from .reference_run import Reference
from .task import PlannedTrial, Task, input_specs

_EXTRA_RUNS = ("repeat", "ghost")  # of the first trial
FAILURES = {
    ExecutionStatus.FAULT: Reason.DOES_NOT_RUN,
    ExecutionStatus.MEMORY: Reason.OUT_OF_MEMORY,
    ExecutionStatus.MALFORMED: Reason.CRASHED,
    ExecutionStatus.TIMED_OUT: Reason.TIMED_OUT,
    ExecutionStatus.DIED: Reason.CRASHED,
}


class Untraceable(Exception):
    """No trace describes the candidate: its launches depend on values, or it needs an operator that traces lack."""


def execute(reference: Reference) -> tuple[TrialsReply, Tensors]:
    """Run the trials on a GPU, see `run_candidate`; reply and tensors are in the form of the guest `interpret`.

    Raises: Untraceable, InputRejected, Rejected.
    """
    sandbox, limits = reference.sandbox, reference.settings.limits
    assert sandbox.gpus is not None
    if reference.task.training:
        raise Untraceable("a trace has no backward")
    trials = reference.trials
    report = trace(reference.task, trials, sandbox.gpus.description.target, sandbox, limits)
    reply = reply_of(report, Reason.DOES_NOT_RUN)
    if reply.load_error:
        return TrialsReply(load_error=reply.load_error), {}
    if reply.untraceable:
        raise Untraceable(reply.untraceable)
    reference.check_state(reply.state)  # a program names entries of the state, and only the reference's have values
    calls = list(_calls(trials))
    if reply.refused:
        unwanted = [calls[number] for number in reply.refused if number < len(calls)]
        raise InputRejected([i for i, trial in enumerate(trials) if (trial.workload, trial.strided) in unwanted])
    try:
        kernels = read_kernels([*reply.kernels])
        programs = [read_program(claim, len(kernels)) for claim in reply.programs]
    except MalformedReply as error:
        raise Rejected(Reason.CRASHED, f"the candidate's guest gave no proper programs: {error}") from error
    if len(programs) != len(calls):
        raise Rejected(Reason.CRASHED, f"{len(programs)} programs for {len(calls)} calls")
    runs = [_run(calls.index((trial.workload, trial.strided)), index, trial) for index, trial in enumerate(trials)]
    runs += [runs[0] | {"poison": "huge"}, runs[0] | {"launching": False}]
    states = {trial.state for trial in trials}
    values = {f"state.{key}.{name}": value for key in states for name, value in reference.undrawn.items()}
    values |= reference.tensors
    values |= {name: t for name, t in report.tensors.items() if name.startswith(("binary.", "constant."))}
    request = {"kernels": [*reply.kernels], "programs": [*reply.programs], "runs": runs}
    execution = sandbox.gpus.run(request, values, limits.cpu_s)
    if execution.status != ExecutionStatus.DONE:
        raise Rejected(FAILURES[execution.status], execution.error)
    return _as_interpreted(reply, programs, runs, execution, [kernel.name for kernel in kernels])


def trace(
    task: Task, trials: Sequence[PlannedTrial], target: str, sandbox: Sandbox, limits: Limits
) -> Report[TraceReply]:
    """Trace each combination of workload and layout in `trials`, in order of their first trial.

    The kernels of a lowered candidate come from the cache of compiled kernels where they are there.

    Raises:
        Rejected: a kernel does not compile, or the compiler crashes.
    """
    workloads = task.calls
    calls = tuple(
        TracedCall(
            args=workloads[index].args,
            kwargs=workloads[index].kwargs,
            inputs=input_specs(workloads[index]),
            strided=strided,
            optional=task.may_refuse(index),
            trial=number,
        )
        for (index, strided), number in _calls(trials).items()
    )
    request = TraceRequest(task.candidate_source, target, calls, deferred=not task.by_model)
    report = sandbox.run(Job(TRACE, request, {}, limits))
    if task.by_model or report.reply is None or not report.reply.sources:
        return report
    compiled = compile_sources(report.reply.sources, sandbox, limits)
    binaries = {f"binary.{found.digest}": _as_tensor(found) for found in compiled.values() if isinstance(found, Binary)}
    try:
        reply = _with_binaries(report.reply, calls, compiled, target)
    except MalformedReply:
        return report  # its reader refuses it
    return replace(report, reply=reply, tensors={**report.tensors, **binaries})


def _with_binaries(
    reply: TraceReply, calls: Sequence[TracedCall], compiled: Mapping[str, Binary | str], target: str
) -> TraceReply:
    """The reply with binaries of the deferred kernels. If some do not compile, it refuses the calls that launch them.

    Raises:
        MalformedReply: the reply has another form.
        Rejected: the candidate may not refuse such a call.
    """
    kernels = read_kernels([*reply.kernels])
    errors = {number: compiled[k.sha256] for number, k in enumerate(kernels) if isinstance(compiled.get(k.sha256), str)}
    if not errors:
        described = [_described(kernel, compiled.get(kernel.sha256)) for kernel in kernels]
        return replace(reply, kernels=tuple(described), sources={})
    refused = []
    for number, (call, claim) in enumerate(zip(calls, reply.programs, strict=False)):
        launched = errors.keys() & {kernel for kernel, _ in read_program(claim, len(kernels)).launches}
        if launched and not call.optional:
            raise Rejected(Reason.DOES_NOT_COMPILE, f"{target}: {errors[min(launched)]}")
        refused += [number] if launched else []
    return replace(reply, programs=(), kernels=(), sources={}, refused=tuple(refused))


def _described(kernel: Kernel, compiled: Binary | str | None) -> dict[str, Any]:
    """The kernel as programs name it, with its binary if it was deferred."""
    if isinstance(compiled, Binary):
        made = {name: getattr(compiled, name) for name in ("warps", "shared", "scratch")}
        kernel = replace(kernel, symbol=ENTRY, sha256=compiled.digest, **made)
    return {**asdict(kernel), "scratch": [*kernel.scratch]}


def _as_tensor(compiled: Binary) -> Tensor:
    return torch.frombuffer(bytearray(compiled.data), dtype=torch.uint8)


def _calls(trials: Sequence[PlannedTrial]) -> dict[tuple[int, bool], int]:
    """Number of the first trial for each combination of workload and strided inputs."""
    calls: dict[tuple[int, bool], int] = {}
    for number, trial in enumerate(trials):
        calls.setdefault((trial.workload, trial.strided), number)
    return calls


def _run(program: int, index: int, trial: PlannedTrial) -> dict[str, Any]:
    return {"program": program, "trial": index, "state": trial.state, "poison": "nan", "launching": True}


def _as_interpreted(
    reply: TraceReply,
    programs: Sequence[Program],
    runs: Sequence[Mapping[str, Any]],
    execution: Execution,
    names: Sequence[str],
) -> tuple[TrialsReply, Tensors]:
    """Reply and tensors of the executor in the form of the guest `interpret`."""
    results: Tensors = {}
    calls = []
    prefixes = [*(str(run["trial"]) for run in runs[: -len(_EXTRA_RUNS)]), *_EXTRA_RUNS]
    for index, (run, prefix) in enumerate(zip(runs, prefixes, strict=True)):
        changed = execution.reply["runs"][index]["changed"]
        call, tensors = _call(programs[run["program"]], changed, execution.tensors, index, prefix)
        calls.append(call)
        results |= tensors
    # Each run has buffers of its own, so no later run changes the outputs of an earlier one.
    results |= {f"later.output.{i}": results[f"0.output.{i}"] for i in range(len(programs[runs[0]["program"]].outputs))}
    launches = tuple(
        tuple((names[kernel], tuple(grid)) for kernel, grid in programs[run["program"]].launches)
        for run in runs[: -len(_EXTRA_RUNS)]
    )
    *trials, repeat, ghost = calls
    interpreted = TrialsReply(
        state=reply.state,
        snapshot=reply.snapshot,
        trials=tuple(trials),
        launches=launches,
        repeat=repeat,
        ghost=ghost,
        operators=reply.operators,
    )
    return interpreted, results


def _call(
    program: Program, changed: Sequence[str], tensors: Tensors, index: int, prefix: str
) -> tuple[ObservedCall, Tensors]:
    """One run, and its tensors by their names in the reply."""
    mutated = sorted(int(name.removeprefix("input.")) for name in changed if name.startswith("input."))
    results = {f"{prefix}.output.{i}": tensors[f"{index}.output.{i}"] for i in range(len(program.outputs))}
    state = sorted(name.removeprefix("state.") for name in changed if name.startswith("state."))
    for place, name in enumerate([*(f"input.{number}" for number in mutated), *(f"state.{name}" for name in state)]):
        results[f"{prefix}.mutated.{place}"] = tensors[f"{index}.changed.{name}"]
    call = ObservedCall(
        tree=program.tree,
        strides=tuple(view.strides for view in program.outputs),
        shares=tuple(_shares(program)),
        mutated=tuple(mutated),
        changed=tuple(state),
    )
    return call, results


def _shares(program: Program) -> list[str]:
    """The state, input or earlier output that each output shares memory with; "" for none."""
    owners: dict[int, str] = {}
    for kind in ("state", "input"):
        named = ((name, view) for name, view in program.named.items() if name.startswith(f"{kind}."))
        owners |= {view.storage: f"{kind} {name.partition('.')[2]}" for name, view in named}
    shares: list[str] = []
    for index, view in enumerate(program.outputs):
        before = (f"output {other}" for other in range(index) if view.overlaps(program.outputs[other]))
        shares.append("" if view.is_empty else owners.get(view.storage) or next(before, ""))
    return shares
