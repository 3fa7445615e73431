"""Compile a candidate's kernels ahead of time. Deferred ones come from the cache of compiled kernels, or `codegen`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib.metadata import version

from kernelquarry.pipeline.sandbox import Job, Limits, Sandbox
from kernelquarry.pipeline.sandbox.jobs.codegen import CODEGEN, CodegenRequest, KernelSource
from kernelquarry.pipeline.sandbox.jobs.compile import COMPILE, CompileRequest
from kernelquarry.pipeline.sandbox.kernel_cache import Binary
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Engine, Verdict

from .evidence import Rejected, check_compiled, reply_of
from .reference_run import Reference
from .task import Call, Task, VerifySettings, draw, replan, shapes_of, trial_calls

# Errors of the interpreter that a GPU raises at run time, too.
_UNALIGNED = re.compile("16-byte aligned|last dim must be contiguous")


def compile_kernels(reference: Reference, engine: Engine) -> tuple[str, ...]:
    """The target that the candidate was compiled for, if any.

    A trace was compiled for the GPU that ran it, so the candidate is not compiled for that target again.

    Raises:
        Rejected: a kernel does not compile.
    """
    task, sandbox, settings = reference.task, reference.sandbox, reference.settings
    target = settings.target_on(sandbox)
    if not target:
        return ()
    traced = sandbox.gpus.description.target if sandbox.gpus is not None and engine is Engine.TRACE else ""
    if target == traced:
        return (target,)
    more = [i for i in reference.first_trials_of_calls()[1:] if reference.trials[i].workload < len(task.workloads)]
    request = CompileRequest(
        module=task.candidate_source,
        trials=trial_calls(task, reference.trials),
        targets=(target,),
        more_trials=tuple(more) if task.by_model else (),
        deferred=not task.by_model,
    )
    report = sandbox.run(Job(COMPILE, request, reference.tensors, settings.limits))
    reply = reply_of(report, Reason.DOES_NOT_COMPILE)
    check_compiled(reply, target)
    compiled = compile_sources({} if task.by_model else reply.sources, sandbox, settings.limits)
    if errors := [found for found in compiled.values() if isinstance(found, str)]:
        raise Rejected(Reason.DOES_NOT_COMPILE, f"{target}: {errors[0]}")
    return (target,)


def compile_for_targets(
    task: Task, verdict: Verdict, targets: Sequence[str], sandbox: Sandbox, limits: Limits
) -> tuple[str, ...]:
    """The targets for which a verified row compiles, with as many launches as its verdict counted.

    Raises:
        Rejected: the row raises when it is compiled, or the compiler crashes.
    """
    trials = replan(verdict.trials)[:1]
    calls_of_trials = trial_calls(task, trials)
    request = CompileRequest(task.candidate_source, calls_of_trials, tuple(targets), deferred=not task.by_model)
    reply = reply_of(sandbox.run(Job(COMPILE, request, draw(task, trials), limits)), Reason.DOES_NOT_COMPILE)
    compiled = compile_sources({} if task.by_model else reply.sources, sandbox, limits)
    failed = {reply.sources[name].target for name, found in compiled.items() if isinstance(found, str)}
    calls = {target: call for target in targets for call in reply.targets.get(target, ())}
    return tuple(
        target
        for target, call in calls.items()
        if target not in failed and call.succeeded and (call.without_room or len(call.launches) == verdict.launches)
    )


def check_kernel_failure(call: Call, broken: str, sandbox: Sandbox, settings: VerifySettings) -> None:
    """Reject a kernel that raised the exception `broken` ("": none) in the interpreter, and yet compiles.

    A model's candidate may refuse inputs by raising, also by a kernel that does not compile. A kernel that only the
    interpreter rejects, or that asserts a false assumption, would run on a GPU.
    """
    if not broken or not (target := settings.target_on(sandbox)) or _UNALIGNED.search(broken):
        return
    trials = (call.trial,)
    request = CompileRequest(call.task.candidate_source, trial_calls(call.task, trials), (target,))
    report = sandbox.run(Job(COMPILE, request, draw(call.task, trials), settings.limits))
    compiled = report.reply.targets.get(target, ()) if report.reply else ()
    if compiled and compiled[0].succeeded:
        where = f"for inputs {shapes_of(call.task.workloads[0])}"
        raise Rejected(Reason.DOES_NOT_RUN, f"{where} a kernel compiles, and raises as interpreted: {broken}")


def compile_sources(sources: Mapping[str, KernelSource], sandbox: Sandbox, limits: Limits) -> dict[str, Binary | str]:
    """The binary of each source, or the error of the compiler. All that the cache lacks is compiled in one guest.

    Raises:
        Rejected: the compiler crashes, or exceeds the limits.
    """
    known = {name: sandbox.kernels.get(source, version("triton")) for name, source in sources.items()}
    compiled: dict[str, Binary | str] = {name: binary for name, binary in known.items() if binary is not None}
    missing = {name: source for name, source in sources.items() if name not in compiled}
    if not missing:
        return compiled
    report = sandbox.run(Job(CODEGEN, CodegenRequest(tuple(missing.values())), {}, limits))
    reply = reply_of(report, Reason.DOES_NOT_COMPILE)
    if len(reply.kernels) != len(missing):
        raise Rejected(Reason.CRASHED, f"the compiler's guest gave {len(reply.kernels)} kernels of {len(missing)}")
    for number, ((name, source), kernel) in enumerate(zip(missing.items(), reply.kernels, strict=True)):
        data = report.tensors.get(f"binary.{number}")
        if kernel.error or data is None:
            compiled[name] = kernel.error or "no binary"
        else:
            compiled[name] = sandbox.kernels.put(source, reply.triton, kernel, data.numpy().tobytes())
    return compiled
