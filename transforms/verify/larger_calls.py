"""Compare a model's candidate on large calls with its trials, without running its kernels.

Forward is Python code, and could take another path for a large input. A dry run records the operators and launches of
forward and runs no kernel. On a GPU, the kernels also run once on a grid too large to be resident at once, to check
that they terminate.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace

from kernelquarry.pipeline.sandbox import Job, Sandbox
from kernelquarry.pipeline.sandbox.executor.service import ExecutionStatus
from kernelquarry.pipeline.sandbox.jobs.dry_run import DRY_RUN, DryCall, DryRunReply, DryRunRequest
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Purity, Workload
from kernelquarry.transforms.workloads.resize import count_elements, large, set_each, square, wide

from .evidence import Rejected, reply_of
from .execution import FAILURES, trace
from .paths import MORE, is_longer_loop
from .reference_run import Reference
from .task import Call, VerifySettings, input_specs, shapes_of

_FLAG = re.compile(r"\b(\w+=[A-Za-z]\w*)(?=[,)])")
_NUMBER = re.compile(r"\b(?!num_|maxnreg)(\w+)=(-?\d[\d.e+-]*)(?=[,)])")  # no option of the compiler
_UNIT = 64
_ELEMENTS, _FEWER_ELEMENTS = 1 << 25, 1 << 17
_STEPS = 2000  # limit for the path of a call that is not a trial
_MEDIUM = 499  # a size at which loops over it stay below the limit
_LARGE_S = 20.0  # to trace a large call, and then for its kernels, which take a second if they terminate


@dataclass(frozen=True, slots=True)
class DryLaunches:
    """The launches of forward in the trials, and for larger inputs, where no kernel ran."""

    known: tuple[str, ...] = ()
    larger: tuple[tuple[Workload, tuple[str, ...]], ...] = ()

    def unverified(self, ran: Iterable[str]) -> str:
        """A flag that a kernel only gets for larger inputs, or another number where it had one; "" if there is none.

        Args:
            ran: launches of further calls, whose kernels ran.
        """
        verified = [*self.known, *ran]
        known_flags, known_numbers = _flags(verified), _numbers(verified)
        for workload, log in self.larger:
            where = f"only for inputs {shapes_of(workload)} gives a kernel"
            for flag in sorted(_flags(log) - known_flags):
                return f"{where} {flag}"
            for name, values in _numbers(log).items():
                known = known_numbers.get(name, set())
                if len(known) == 1 and values != known:
                    return f"{where} {name} other than {min(known)}"
        return ""


def check_larger_calls(
    reference: Reference, sandbox: Sandbox, settings: VerifySettings, elements: int = _ELEMENTS
) -> DryLaunches:
    """Check that forward behaves on large calls as it does in the trials. Raises: Rejected.

    Args:
        elements: of a large input. A mixed candidate that exceeds the time limit is checked again with fewer, as the
            dry run executes PyTorch's operators.
    """
    task = reference.task
    first = reference.first_trials_of_calls()
    known = [task.calls[reference.trials[index].workload] for index in first]
    larger = _larger_calls(task.workloads, elements) if task.shape_general else []
    if not larger:
        return DryLaunches()
    calls = [_call(workload, index) for index, workload in zip(first, known, strict=True)]
    calls += [
        replace(_limited_call(workload), otherwise=_limited_call(even) if even else None) for workload, even in larger
    ]
    request = DryRunRequest(module=task.candidate_source, calls=tuple(calls), cut_off=MORE)
    try:
        dry_run = reply_of(sandbox.run(Job(DRY_RUN, request, {}, settings.limits)), Reason.DOES_NOT_RUN)
    except Rejected as rejected:
        if rejected.reason is Reason.TIMED_OUT and task.purity is Purity.MIXED and elements > _FEWER_ELEMENTS:
            return check_larger_calls(reference, sandbox, settings, _FEWER_ELEMENTS)
        raise Rejected(rejected.reason, f"called for large inputs: {rejected.found}") from rejected
    if len(dry_run.calls) != len(calls):
        raise Rejected(Reason.CRASHED, f"{len(dry_run.calls)} paths of {len(calls)} calls")
    for call, index in zip(dry_run.calls, first, strict=False):
        if call.path is None:
            found = f"raises when called again: {call.raised}"
            raise Rejected(Reason.UNVERIFIED_PATH, found, reference.trials[index])
    return _check_larger(dry_run, known, [workload for workload, _ in larger])


def _check_larger(dry_run: DryRunReply, known: Sequence[Workload], larger: Sequence[Workload]) -> DryLaunches:
    """Compare the paths of larger calls with known ones. Raises: Rejected."""
    tried, large = dry_run.calls[: len(known)], dry_run.calls[len(known) :]
    known_paths = [call.path for call in tried]
    known_pairs = list(zip(known_paths, known, strict=True))
    logs: list[tuple[Workload, tuple[str, ...]]] = []
    for call, workload in zip(large, larger, strict=True):
        if call.path is None:
            continue
        if call.path not in known_paths and not is_longer_loop(call.path, workload, known_pairs):
            other = _divergence(call.path, known_paths[0])
            raise Rejected(Reason.UNVERIFIED_PATH, f"goes another way for inputs {shapes_of(workload)}: {other}")
        logs.append((workload, call.launch_log))
    return DryLaunches(tuple(launch for call in tried for launch in call.launch_log), tuple(logs))


def _larger_calls(workloads: Sequence[Workload], elements: int) -> list[tuple[Workload, Workload | None]]:
    """Calls with medium sizes, in which loops iterate several times, and calls with large sizes.

    Each has an alternative with multiples of 64, or None, for candidates that reject odd sizes.
    """
    fewer = elements // 4
    uniform = (call for call in (wide(workloads, fewer), square(workloads, fewer)) if call is not None)
    odd, even = (large(workloads, elements, unit) for unit in (1, _UNIT))
    medium = (call for call in set_each(workloads, _MEDIUM) if count_elements(call) <= elements)
    return [*((call, None) for call in medium), *zip(odd, even, strict=True), *((call, None) for call in uniform)]


def _divergence(path: list[str] | None, before: list[str] | None) -> str:
    """The first step at which two paths differ."""
    if path is None or before is None:
        return f"{path} in place of {before}"
    step = next((at for at, pair in enumerate(zip(path, before, strict=False)) if pair[0] != pair[1]), None)
    if step is None:
        more = max(path, before, key=len)[min(len(path), len(before))]
        return f"{len(path)} steps in place of {len(before)}, {more} {'more' if len(path) > len(before) else 'less'}"
    return f"{path[step]} in place of {before[step]}, its step {step + 1}"


def _flags(launch_log: Iterable[str]) -> set[str]:
    """Arguments of launches with few possible values, such as booleans, which kernels may branch on."""
    arguments = ((launch.partition("[")[0], _FLAG.findall(launch)) for launch in launch_log)
    return {f"{kernel} {flag}" for kernel, flags in arguments for flag in flags}


def _numbers(launch_log: Iterable[str]) -> dict[str, set[str]]:
    """The numbers that each argument of a kernel had."""
    found: dict[str, set[str]] = {}
    for launch in launch_log:
        for name, number in _NUMBER.findall(launch):
            found.setdefault(f"{launch.partition('[')[0]} {name}", set()).add(number)
    return found


def run_large(reference: Reference, sandbox: Sandbox, settings: VerifySettings) -> None:
    """Run the kernels for a large input on a GPU. Raises: Rejected: they fault, or do not terminate.

    A candidate that cannot be traced there, or that needs more memory than the GPU has, passes.
    """
    task, tensors = reference.task, reference.tensors
    workload = wide(task.workloads, _ELEMENTS // 4) if task.shape_general else None
    if workload is None or sandbox.gpus is None:
        return
    limits = replace(settings.limits, wall_s=_LARGE_S, cpu_s=int(_LARGE_S))
    call = Call.of(task, workload, 0, "normal")
    report = trace(call.task, [call.trial], sandbox.gpus.description.target, sandbox, limits)
    if report.reply is None or not report.reply.programs:
        return
    first = {name.replace("state.0.", "state."): t for name, t in tensors.items() if name.startswith("state.0.")}
    values = {f"state.{name}": t for name, t in reference.undrawn.items()} | first | report.tensors
    request = {"kernels": [*report.reply.kernels], "programs": [*report.reply.programs], "slopes": 0}
    request["drawn"] = [asdict(spec) for spec in input_specs(workload)]
    execution = sandbox.gpus.run(request, values, _LARGE_S)
    # MALFORMED includes a grid that exceeds the limits of the GPU.
    if execution.status not in (ExecutionStatus.DONE, ExecutionStatus.MEMORY, ExecutionStatus.MALFORMED):
        raise Rejected(FAILURES[execution.status], f"for inputs {shapes_of(workload)}: {execution.error}")


def _call(workload: Workload, trial: int) -> DryCall:
    return DryCall(workload.args, workload.kwargs, input_specs(workload), trial)


def _limited_call(workload: Workload) -> DryCall:
    """A call whose path ends at the step limit, as a loop may have an iteration for each element of an axis."""
    return replace(_call(workload, 0), steps=_STEPS)
