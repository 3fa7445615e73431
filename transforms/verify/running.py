"""A candidate's trials, run by what the sandbox has: GPUs, or Triton's interpreter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from kernelquarry.pipeline.sandbox import Job, Report, Sandbox
from kernelquarry.pipeline.sandbox.jobs.run_trials import EXECUTE, INTERPRET
from kernelquarry.pipeline.sandbox.protocol import Tensors
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import CANDIDATE_ENTRY_POINT, Engine

from .compiling import check_refusal
from .evidence import InputRejected, Rejected, refused_in, reply_of
from .execution import Untraceable, execute
from .reference_run import Reference
from .task import Call, VerifySettings, describe


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of the trials, told as the guest `interpret` tells it whatever ran them."""

    reply: dict[str, Any]
    tensors: Tensors
    engine: Engine


def run_candidate(reference: Reference, sandbox: Sandbox, settings: VerifySettings) -> Ran:
    """The trials of the reference, a repetition and a ghost of the first.

    Raises:
        InputRejected: it raises on trials on which it may.
        Rejected: it did not run to the end.
    """
    tensors = reference.tensors
    request = describe(reference.task, reference.trials)
    request |= {"code": reference.task.triton_code, "entry_point": CANDIDATE_ENTRY_POINT}
    if sandbox.gpus is None or settings.engine is Engine.INTERPRETER:
        alone = replace(settings.limits, processes=1)  # all that it does is done where it is seen
        report = sandbox.run(Job(INTERPRET, request, tensors, alone))
        _check_refusals(reference, report, sandbox, settings)
        return _ran(report, Engine.INTERPRETER)
    if settings.engine is not Engine.GUEST:
        try:
            return Ran(*execute(reference, sandbox, settings), Engine.TRACE)
        except Untraceable as why:
            if settings.engine is Engine.TRACE:
                raise Rejected(Reason.UNTRACEABLE, str(why)) from why
    with sandbox.gpus.share() as gpu:
        report = sandbox.run(Job(EXECUTE, request | {"gpu": gpu}, tensors, settings.limits))
    return _ran(report, Engine.GUEST)


def _check_refusals(reference: Reference, report: Report, sandbox: Sandbox, settings: VerifySettings) -> None:
    """Raises: Rejected: a trial was refused by a kernel that compiles there."""
    task, broken = reference.task, (report.reply or {}).get("broken")
    for index, trial in enumerate(reference.trials):
        if isinstance(broken, dict) and (why := str(broken.get(str(index), ""))):
            alone = replace(task, workloads=(task.calls[trial.workload],))
            check_refusal(Call(alone, replace(trial, workload=0)), why, sandbox, settings)


def _ran(report: Report, engine: Engine) -> Ran:
    reply = reply_of(report, Reason.DOES_NOT_RUN)
    if refused := refused_in(reply):
        raise InputRejected(refused)
    return Ran(reply, report.tensors, engine)
