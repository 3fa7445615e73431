"""What a model's candidate does where no trial looks must be what it did where one did.

A forward is Python, and could go another way for a large input, or once it was called often enough. Which way it goes
shows without running any kernel. Where there is a GPU, its kernels must also come to an end on a grid that is too large
to be on the GPU at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from kernelquarry.pipeline.sandbox import Job, Sandbox
from kernelquarry.pipeline.sandbox.executor.service import ExecutionStatus
from kernelquarry.pipeline.sandbox.jobs.dry_run import DRY_RUN
from kernelquarry.pipeline.sandbox.observation import MalformedReply, expect
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import CANDIDATE_ENTRY_POINT, Purity, Workload
from kernelquarry.transforms.workloads.resize import count_elements, large, set_each, square, sweep_each, wide

from .evidence import Rejected, difference, reply_of
from .execution import FAILURES, trace
from .paths import MORE, is_longer_loop
from .reference_run import Reference
from .task import Call, VerifySettings, describe_inputs, shapes_of

_REPEATS = 200
_KEPT = "returns the memory of an earlier result"  # as the guest says it
_FLAG = re.compile(r"\b(\w+=[A-Za-z]\w*)(?=[,)])")
_UNIT = 64
_ELEMENTS, _FEWER = 1 << 25, 1 << 17
_STEPS = 2000  # of a path, after which a call of no trial is broken off
_MEDIUM = 499  # how often a loop may be gone through before it is
_LARGE_S = 20.0  # for tracing, and then for kernels that take a second at most if they end at all


def rehearse(
    reference: Reference,
    told: Sequence[list[str]],
    sandbox: Sandbox,
    settings: VerifySettings,
    elements: int = _ELEMENTS,
) -> dict[str, str]:
    """Raises `Rejected` if the candidate goes a way at a large size, or after many calls, that it goes in no trial.

    Returns what kernels are given at large sizes alone that is one of few, and where: see `flags`.

    Args:
        told: the launches of each trial with what they were given; () if what ran them does not say.
        elements: of a large input. There are less for what PyTorch's operators, which really run, take too long for.
    """
    task, every = reference.task, reference.task.calls
    first = [0, *reference.of_other_calls()]
    calls = [_call(every[reference.trials[index].workload], index) for index in first]
    beyond = _beyond(task.workloads, elements) if task.shape_general else []
    calls += [_endless(workload) | {"otherwise": even and _endless(even)} for workload, even in beyond]
    request = {
        "code": task.triton_code,
        "entry_point": CANDIDATE_ENTRY_POINT,
        "init_args": task.init_args,
        "dtype": task.dtype,
        "calls": calls,
        "repeats": _REPEATS,
        "sizes": [_endless(workload) for workload in sweep_each(task.workloads)] if task.shape_general else [],
        "seed": task.first_seed >> 8,
        "mixed": task.purity is Purity.MIXED,
        "broken_off": MORE,
    }
    try:
        reply = reply_of(sandbox.run(Job(DRY_RUN, request, {}, settings.limits)), Reason.DOES_NOT_RUN)
    except Rejected as rejected:
        if rejected.reason is Reason.TIMED_OUT and request["mixed"] and elements > _FEWER:
            return rehearse(reference, told, sandbox, settings, _FEWER)
        found = f"called {_REPEATS} times more, and for large inputs: {rejected.found}"
        raise Rejected(rejected.reason, found) from rejected
    try:
        paths, later, raised, launched = (
            expect(reply.get(name), list) for name in ("paths", "later", "raised", "told")
        )
        handled, keeps, left = (expect(reply.get(name), str) for name in ("handled", "keeps", "left"))
    except MalformedReply as error:
        raise Rejected(Reason.CRASHED, f"the candidate's guest gave no proper reply: {error}") from error
    if not len(paths) == len(raised) == len(launched) == len(calls):
        raise Rejected(Reason.CRASHED, f"{len(paths)} paths of {len(calls)} calls")
    for place, index in enumerate(first):
        trial = reference.trials[index]
        if paths[place] is None:
            raise Rejected(Reason.UNVERIFIED_PATH, f"raises where it is called again: {raised[place]}", trial)
        if told and (other := difference(launched[place], told[index])):
            raise Rejected(Reason.UNVERIFIED_PATH, f"launches otherwise where it is called again: {other}", trial)
        if (_KEPT in paths[place]) != (_KEPT in paths[0]):
            raise Rejected(Reason.UNVERIFIED_PATH, f"only for some sizes {_KEPT}", trial)
    if later:
        path, launches, why = later[0]
        other = why or (difference(launches, launched[0]) if path == paths[0] else _parting(path, paths[0]))
        raise Rejected(Reason.UNVERIFIED_PATH, f"one of {_REPEATS} further calls goes another way: {other}")
    known, new = flags(launch for one in launched[: len(first)] for launch in one), dict[str, str]()
    tried = [(paths[place], every[reference.trials[index].workload]) for place, index in enumerate(first)]
    for place, (workload, _) in enumerate(beyond, len(first)):
        if paths[place] is None:
            continue
        if paths[place] not in paths[: len(first)] and not is_longer_loop(paths[place], workload, tried):
            parting = _parting(paths[place], paths[0])
            raise Rejected(Reason.UNVERIFIED_PATH, f"goes another way for inputs {shapes_of(workload)}: {parting}")
        where = f"only for inputs {shapes_of(workload)} gives a kernel"
        new |= {flag: f"{where} {flag}" for flag in sorted(flags(launched[place]) - known)}
    if handled:
        raise Rejected(Reason.UNVERIFIED_PATH, f"catches an exception, which a machine need not raise: {handled}")
    if keeps:
        raise Rejected(Reason.UNVERIFIED_PATH, f"what it keeps still changes after {_REPEATS // 2} calls: {keeps}")
    if left:
        raise Rejected(Reason.WRONG_CONTRACT, f"changes what others share: {left}")
    return new


def _beyond(workloads: Sequence[Workload], elements: int) -> list[tuple[Workload, Workload | None]]:
    """Larger calls, each with what is called where the candidate refuses it, as it may odd sizes: up to some hundreds,
    for the sake of loops, and large ones."""
    fewer = elements // 4
    alike = (call for call in (wide(workloads, fewer), square(workloads, fewer)) if call is not None)
    odd, even = (large(workloads, elements, unit) for unit in (1, _UNIT))
    medium = (call for call in set_each(workloads, _MEDIUM) if count_elements(call) <= elements)
    return [*((call, None) for call in medium), *zip(odd, even, strict=True), *((call, None) for call in alike)]


def _parting(path: Any, before: Any) -> str:
    """Where one way leaves another, as the guest tells them."""
    if not (isinstance(path, list) and isinstance(before, list)):
        return f"{path} in place of {before}"
    step = next((at for at, pair in enumerate(zip(path, before, strict=False)) if pair[0] != pair[1]), None)
    if step is None:
        more = max(path, before, key=len)[min(len(path), len(before))]
        return f"{len(path)} steps in place of {len(before)}, {more} {'more' if len(path) > len(before) else 'less'}"
    return f"{path[step]} in place of {before[step]}, its step {step + 1}"


def flags(told: Iterable[str]) -> set[str]:
    """What launches are given that is one of few: a kernel goes one way or the other by it."""
    given = ((launch.partition("[")[0], _FLAG.findall(launch)) for launch in told)
    return {f"{kernel} {flag}" for kernel, flags in given for flag in flags}


def run_large(reference: Reference, sandbox: Sandbox, settings: VerifySettings) -> None:
    """Raises `Rejected` if the candidate's kernels fault, or do not end, for a large input.

    Of what they compute nothing is looked at. What cannot be traced there, or asks for more than a GPU gives, is not
    run.
    """
    task, tensors = reference.task, reference.tensors
    beyond = wide(task.workloads, _ELEMENTS // 4) if task.shape_general else None
    if beyond is None or sandbox.gpus is None:
        return
    limits = replace(settings.limits, wall_s=_LARGE_S, cpu_s=int(_LARGE_S))
    call = Call.of(task, beyond, 0, "normal")
    report = trace(call.task, [call.trial], sandbox.gpus.description.target, sandbox, limits)
    if report.reply is None or "programs" not in report.reply:
        return
    first = {name.replace("state.0.", "state."): t for name, t in tensors.items() if name.startswith("state.0.")}
    values = {f"state.{name}": t for name, t in reference.undrawn.items()} | first | report.tensors
    request = {name: report.reply[name] for name in ("kernels", "programs")}
    request |= {"drawn": describe_inputs(beyond), "slopes": 0}
    execution = sandbox.gpus.run(request, values, _LARGE_S)
    # MALFORMED: for one, a grid that no GPU takes.
    if execution.status not in (ExecutionStatus.DONE, ExecutionStatus.MEMORY, ExecutionStatus.MALFORMED):
        raise Rejected(FAILURES[execution.status], f"for inputs {shapes_of(beyond)}: {execution.error}")


def _call(workload: Workload, trial: int) -> dict[str, Any]:
    inputs = describe_inputs(workload)
    return {"args": workload.args, "kwargs": workload.kwargs, "inputs": inputs, "trial": trial}


def _endless(workload: Workload) -> dict[str, Any]:
    """A call that may go through a loop for as long as an axis is."""
    return _call(workload, 0) | {"steps": _STEPS}
