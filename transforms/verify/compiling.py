"""Compile a candidate's kernels for each target."""

from __future__ import annotations

import re

from kernelquarry.pipeline.sandbox import Job, Sandbox
from kernelquarry.pipeline.sandbox.jobs.compile import COMPILE, CompileRequest
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Engine

from .evidence import Rejected, check_launches_agree, reply_of
from .reference_run import Conclusion, Reference
from .task import Call, VerifySettings, draw, shapes_of, trial_calls

# Errors of the interpreter that a GPU raises at run time, too.
_UNALIGNED = re.compile("16-byte aligned|last dim must be contiguous")


def compile_kernels(
    reference: Reference, conclusion: Conclusion, engine: Engine, sandbox: Sandbox, settings: VerifySettings
) -> tuple[str, ...]:
    """The targets of the settings that the candidate compiles for.

    A trace was compiled for the GPU that ran it, so a lowered candidate is not compiled for that target again. A
    model's candidate is, since it could tell tracing from compilation.

    Args:
        conclusion: of the trials; for each target, the candidate must make the same launches.

    Raises:
        Rejected: a kernel does not compile, or the candidate behaves differently when compiled.
    """
    task = reference.task
    traced: list[str] = []
    if sandbox.gpus is not None and engine is Engine.TRACE and not task.by_model:
        traced.append(sandbox.gpus.description.target)
    left = [target for target in settings.targets if target not in traced]
    if not left:
        return settings.targets
    needed = settings.needed(task)
    more = [i for i in reference.first_trials_of_calls()[1:] if reference.trials[i].workload < len(task.workloads)]
    request = CompileRequest(
        module=task.candidate_source,
        trials=trial_calls(task, reference.trials),
        targets=tuple(left),
        more_target=needed[0] if task.by_model else "",
        more_trials=tuple(more),
    )
    report = sandbox.run(Job(COMPILE, request, reference.tensors, settings.limits))
    reply = reply_of(report, Reason.DOES_NOT_COMPILE)
    compiled = check_launches_agree(reply, left, conclusion.launches, conclusion.launch_logs, needed)
    return tuple(target for target in settings.targets if target in (*traced, *compiled))


def check_kernel_failure(call: Call, broken: str, sandbox: Sandbox, settings: VerifySettings) -> None:
    """Reject a kernel that raised the exception `broken` ("": none) in the interpreter, and yet compiles.

    A model's candidate may refuse inputs by raising, also by a kernel that does not compile. A kernel that only the
    interpreter rejects, or that asserts a false assumption, would run on a GPU.
    """
    if not broken or not settings.targets or _UNALIGNED.search(broken):
        return
    target, trials = settings.needed(call.task)[0], (call.trial,)
    request = CompileRequest(call.task.candidate_source, trial_calls(call.task, trials), (target,))
    report = sandbox.run(Job(COMPILE, request, draw(call.task, trials), settings.limits))
    compiled = report.reply.targets.get(target, ()) if report.reply else ()
    if compiled and not compiled[0].error and not compiled[0].failed:
        where = f"for inputs {shapes_of(call.task.workloads[0])}"
        raise Rejected(Reason.DOES_NOT_RUN, f"{where} a kernel compiles, and raises as interpreted: {broken}")
