"""A candidate's kernels, compiled for each target."""

from __future__ import annotations

import re

from kernelquarry.pipeline.sandbox import Job, Sandbox
from kernelquarry.pipeline.sandbox.jobs.compile import COMPILE
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import CANDIDATE_ENTRY_POINT, Engine

from .evidence import Rejected, check_launches_agree, reply_of
from .reference_run import Conclusion, Reference
from .task import Call, VerifySettings, describe, draw, shapes_of

# What a GPU refuses, too, once it is run.
_UNALIGNED = re.compile("16-byte aligned|last dim must be contiguous")


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
        traced.append(sandbox.gpus.description.target)
    left = [target for target in settings.targets if target not in traced]
    if not left:
        return settings.targets
    needed = settings.needed(task)
    request = describe(task, reference.trials) | {"code": task.triton_code, "entry_point": CANDIDATE_ENTRY_POINT}
    others = [i for i in reference.of_other_calls() if reference.trials[i].workload < len(task.workloads)]
    request |= {"targets": left, "further": needed[0] if task.by_model else "", "others": others}
    report = sandbox.run(Job(COMPILE, request, reference.tensors, settings.limits))
    reply = reply_of(report, Reason.DOES_NOT_COMPILE)
    compiled = check_launches_agree(reply, left, shown.launches, shown.told, needed)
    return tuple(target for target in settings.targets if target in (*traced, *compiled))


def check_refusal(call: Call, broken: str, sandbox: Sandbox, settings: VerifySettings) -> None:
    """What a model's candidate refuses by raising it does not get wrong, and so where its kernel does not compile. But
    what the interpreter alone does not take, or an assumption that is false, a GPU would run.

    Args:
        broken: what a kernel raised where it was interpreted; "" if none did.

    Raises:
        Rejected: one did, and compiles.
    """
    if not broken or not settings.targets or _UNALIGNED.search(broken):
        return
    target, trials = settings.needed(call.task)[0], (call.trial,)
    request = describe(call.task, trials) | {"code": call.task.triton_code, "entry_point": CANDIDATE_ENTRY_POINT}
    request |= {"targets": [target], "further": "", "others": []}
    report = sandbox.run(Job(COMPILE, request, draw(call.task, trials), settings.limits))
    found = (report.reply or {}).get(target)
    if isinstance(found, dict) and "error" not in found and not found.get("failed"):
        where = f"for inputs {shapes_of(call.task.workloads[0])}"
        raise Rejected(Reason.DOES_NOT_RUN, f"{where} a kernel compiles, and raises as interpreted: {broken}")
