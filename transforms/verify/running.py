"""Run a candidate's trials on the sandbox's GPUs, or else in Triton's interpreter."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kernelquarry.pipeline.sandbox import Job, Report, Sandbox
from kernelquarry.pipeline.sandbox.jobs.run_trials import EXECUTE, INTERPRET, TrialsReply, TrialsRequest
from kernelquarry.pipeline.sandbox.protocol import Tensors
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Engine, Workload

from .compiling import check_kernel_failure
from .evidence import InputRejected, Rejected, check_kernels, reply_of
from .execution import Untraceable, execute
from .reference_run import Reference
from .task import Call, Task, VerifySettings, draw, shapes_of, trial_calls
from .validate_task import validate_task


@dataclass(frozen=True, slots=True)
class CandidateRun:
    """Reply and tensors of a candidate's trials, in the form of the guest `interpret` for every engine."""

    reply: TrialsReply
    tensors: Tensors
    engine: Engine


def run_candidate(reference: Reference) -> CandidateRun:
    """Run the candidate on the reference's trials, and repeat the first, once with and once without kernels (ghost).

    Raises:
        InputRejected: the candidate raises on trials on which it may.
        Rejected: the candidate does not run to the end.
    """
    tensors, sandbox, settings = reference.tensors, reference.sandbox, reference.settings
    request = TrialsRequest(reference.task.candidate_source, trial_calls(reference.task, reference.trials))
    if sandbox.gpus is None or settings.engine is Engine.INTERPRETER:
        alone = replace(settings.limits, processes=1)  # so that the guest observes all work
        report = sandbox.run(Job(INTERPRET, request, tensors, alone))
        _check_kernel_failures(reference, report)
        return _read_run(report, Engine.INTERPRETER)
    if settings.engine is not Engine.GUEST:
        try:
            return CandidateRun(*execute(reference), Engine.TRACE)
        except Untraceable as error:
            if settings.engine is Engine.TRACE:
                raise Rejected(Reason.UNTRACEABLE, str(error)) from error
    with sandbox.gpus.share() as gpu:
        report = sandbox.run(Job(EXECUTE, replace(request, gpu=gpu), tensors, settings.limits))
    return _read_run(report, Engine.GUEST)


def check_call(call: Call, sandbox: Sandbox, settings: VerifySettings, inputs: Tensors | None = None) -> CandidateRun:
    """Run the candidate on one call. Raises: Rejected: it fails, or the reference decides nothing on this call.

    Args:
        inputs: tensors in place of those that are drawn, by their keys.
    """
    task, trials = call.task, (call.trial,)
    validate_task(task, trials)
    try:
        reference = Reference(task, trials, draw(task, trials) | (inputs or {}), sandbox, settings)
        reference.check_decided()
        run = run_candidate(reference)
    except InputRejected as rejected:
        raise Rejected(Reason.ORACLE_FAILED, "the candidate raises, as it may on this call") from rejected
    reference.compare(run.reply, run.tensors)
    reference.check_later(run.tensors)
    check_kernels(task, run.reply, [])
    return run


def check_workload(
    task: Task, sandbox: Sandbox, settings: VerifySettings, workload: Workload, distribution: str
) -> None:
    """Run the candidate on one more call. Raises: Rejected: as `check_call` does."""
    call = Call.of(task, workload, task.first_seed, distribution)
    try:
        check_call(call, sandbox, settings)
    except Rejected as rejected:
        found = f"for inputs {shapes_of(workload)}, {distribution}: {rejected.found}"
        raise Rejected(rejected.reason, found, call=call) from rejected


def _check_kernel_failures(reference: Reference, report: Report[TrialsReply]) -> None:
    """Raises: Rejected: a kernel that compiles raised in the interpreter."""
    task, broken = reference.task, report.reply.broken if report.reply else {}
    for index, trial in enumerate(reference.trials):
        if error := broken.get(str(index)):
            alone = replace(task, workloads=(task.calls[trial.workload],))
            call = Call(alone, replace(trial, workload=0))
            check_kernel_failure(call, error, reference.sandbox, reference.settings)


def _read_run(report: Report[TrialsReply], engine: Engine) -> CandidateRun:
    reply = reply_of(report, Reason.DOES_NOT_RUN)
    if reply.refused:
        raise InputRejected(reply.refused)
    return CandidateRun(reply, report.tensors, engine)
