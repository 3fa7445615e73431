"""A candidate's kernels, compiled for each target."""

from __future__ import annotations

from kernelquarry.pipeline.sandbox import Job, Sandbox
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import CANDIDATE_ENTRY_POINT, Engine

from .evidence import check_launches_agree, reply_of
from .reference import Conclusion, Reference
from .task import VerifySettings, describe


def compile_kernels(
    reference: Reference, shown: Conclusion, engine: Engine, sandbox: Sandbox, settings: VerifySettings
) -> tuple[str, ...]:
    """The targets that the candidate compiles for, of those that the settings name.

    A trace was compiled for the GPU that ran it: what was lowered is not compiled for that target again. A model's
    candidate is, since it could tell where it is traced from where it is compiled.

    Args:
        shown: by what ran it: the same launches must be made for each target.

    Raises:
        Rejected: a kernel does not compile, or the candidate behaves otherwise when it is compiled.
    """
    task = reference.task
    traced: list[str] = []
    if sandbox.gpus is not None and engine is Engine.TRACE and not task.by_model:
        traced.append(sandbox.gpus.described.target)
    left = [target for target in settings.targets if target not in traced]
    if not left:
        return settings.targets
    needed = settings.needed(task)
    request = describe(task, reference.trials) | {"code": task.triton_code, "entry_point": CANDIDATE_ENTRY_POINT}
    others = [i for i in reference.of_other_calls() if reference.trials[i].workload < len(task.workloads)]
    request |= {"targets": left, "further": needed[0] if task.by_model else "", "others": others}
    report = sandbox.run(Job("compile", request, reference.tensors, settings.limits))
    reply = reply_of(report, Reason.DOES_NOT_COMPILE)
    compiled = check_launches_agree(reply, left, shown.launches, shown.told, needed)
    return tuple(target for target in settings.targets if target in (*traced, *compiled))
