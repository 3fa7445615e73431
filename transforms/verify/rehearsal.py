"""What a model's candidate does where no trial looks must be what it did where one did.

A forward is Python, and could go another way for a large input, or once it was called often enough. Which way it goes
shows without running any kernel.
"""

from __future__ import annotations

from typing import Any

from kernelquarry.pipeline.sandbox import Job, Sandbox
from kernelquarry.pipeline.sandbox.observation import MalformedReply, expect
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import CANDIDATE_ENTRY_POINT, Workload
from kernelquarry.transforms.sizes import large

from .evidence import Rejected, reply_of
from .task import Task, VerifySettings

_REPEATS = 200


def rehearse(task: Task, sandbox: Sandbox, settings: VerifySettings) -> None:
    """Raises `Rejected` if the candidate goes a way at a large size, or after many calls, that it goes in no trial."""
    workloads = list(task.calls if task.shape_general else task.workloads[:1])
    beyond = large(task.workloads) if task.shape_general else None
    request = {
        "code": task.triton_code,
        "entry_point": CANDIDATE_ENTRY_POINT,
        "init_args": task.init_args,
        "calls": [_call(workload) for workload in [*workloads, *([beyond] if beyond else [])]],
        "repeats": _REPEATS,
    }
    reply = reply_of(sandbox.run(Job("rehearse", request, {}, settings.limits)), Reason.DOES_NOT_RUN)
    try:
        paths, later = expect(reply.get("paths"), list), expect(reply.get("later"), list)
    except MalformedReply as error:
        raise Rejected(Reason.CRASHED, f"the candidate's guest gave no proper reply: {error}") from error
    tried = paths[: len(workloads)]
    if later:
        raise Rejected(Reason.UNTRIED_PATH, f"one of {_REPEATS} further calls goes another way: {later[0]}")
    if beyond is not None and paths[-1] is not None and paths[-1] not in tried:
        shapes = ", ".join(str(list(spec.shape)) for spec in beyond.tensors)
        raise Rejected(Reason.UNTRIED_PATH, f"goes another way for inputs {shapes}: {paths[-1]}")


def _call(workload: Workload) -> dict[str, Any]:
    inputs = [{"shape": list(spec.shape), "dtype": spec.dtype} for spec in workload.tensors]
    return {"args": workload.args, "kwargs": workload.kwargs, "inputs": inputs}
