"""Compare a model's candidate on large calls with verified ones, by plans: no kernel runs, and sizes cost nothing.

Forward is Python code, and could take another path for a large input. On a GPU, the kernels also run once on a grid too
large to be resident at once, to check that they terminate.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial

from kernelquarry.pipeline.sandbox.executor.program import exceeds_grid
from kernelquarry.pipeline.sandbox.executor.service import ExecutionStatus
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Workload
from kernelquarry.transforms.workloads.resize import (
    axis_sizes,
    count_elements,
    free_sizes,
    large,
    resized,
    set_each,
    square,
    wide,
)

from .evidence import Rejected
from .execution import FAILURES, trace
from .paths import Way, counts, path, way
from .plan import Plan, PlannedCall, Planner, Raised, TooLong, Unsupported
from .plan.agreement import planned_calls
from .reference_run import Reference
from .task import Call, input_specs, shapes_of

_FLAG = re.compile(r"\b(\w+=[A-Za-z]\w*)(?=[,)])")
_OPTIONS = "num_warps|num_stages|num_ctas|maxnreg"  # of the compiler
_NUMBER = re.compile(rf"\b(?!(?:{_OPTIONS})=)(\w+)=(-?\d[\d.e+-]*)(?=[,)])")
_UNIT = 64
_ELEMENTS = 1 << 25
_MEDIUM = 499  # a size at which loops over it stay below the evaluator's limit
_MOST_TRIED = 9 << 18  # elements of a call that is run for an argument of large calls
_GROWTH = 4, 2  # of the smallest call with that argument
_LARGE_S = 20.0  # to trace a large call, and then for its kernels, which take a second if they terminate


def check_larger_calls(
    reference: Reference,
    planner: Planner,
    ran: Sequence[str],
    run: Callable[[Workload, str], object] | None = None,
) -> None:
    """Check that forward behaves on large calls as it does in verified ones. Raises: Rejected.

    A large call may go a way that only a further call went: the text is narrowed to the ways of the trials.

    Args:
        planner: of the candidate, with the plans of the verified calls.
        ran: launches of verified calls, of which some may have no plan.
        run: runs the candidate on a call with values of a distribution. Raises: Rejected. An argument of a kernel that
            only large calls have is tried on smaller calls.
    """
    task, known = reference.task, planner.plans
    larger = _larger_calls(task.workloads) if task.shape_general else []
    if not larger or not known:
        return
    try:
        other = Planner(planner.evaluator.source, planner.snapshot)
        plans = ((_plan_one(other, workload, even), workload) for workload, even in larger)
        calls = [(plan, way(plan), workload) for plan, workload in plans if plan]
    except Unsupported as error:
        raise Rejected(Reason.OUTSIDE_LANGUAGE, f"no plan: the host code needs {error}") from error
    ways, tried = set(map(way, known.values())), iterations(known.values())
    of_trials = trial_ways(reference, planner)
    for plan, taken, workload in calls:
        if taken not in ways and not reference.settings.narrows:
            found = _divergence(path(plan), path(next(iter(known.values()))))
        elif taken not in of_trials or not (found := other_iterations(plan, tried)):
            continue
        raise Rejected(Reason.UNVERIFIED_PATH, f"goes another way for inputs {shapes_of(workload)}: {found}")
    verified = [*ran, *(launch for plan in known.values() for launch in plan.launch_log())]
    for plan, taken, workload in calls:
        while taken in of_trials and (argument := new_argument(plan.launch_log(), verified)):
            holds = partial(_gives, other, argument, verified)
            smaller = smaller_calls(task.workloads, workload, holds) if run is not None else []
            if run is None or not smaller or not are_right(smaller, run):
                found = f"only for inputs {shapes_of(workload)} gives a kernel {argument}"
                raise Rejected(Reason.UNVERIFIED_PATH, found)
            verified += [launch for each in smaller for launch in _log(other, each)]


def trial_ways(reference: Reference, planner: Planner) -> set[Way]:
    """The ways that the trials went."""
    calls = planned_calls(reference.task, reference.trials)
    return {way(planner.plans[call]) for call in calls if call in planner.plans}


def _log(planner: Planner, workload: Workload) -> Sequence[str]:
    """The launches of a call; () if it has no plan."""
    with suppress(Unsupported):
        plan = _plan_one(planner, workload)
        return plan.launch_log() if plan else ()
    return ()


def _gives(planner: Planner, argument: str, verified: Sequence[str], workload: Workload) -> bool:
    return argument in new_arguments(_log(planner, workload), verified)


def smaller_calls(workloads: Sequence[Workload], found: Workload, holds: Callable[[Workload], bool]) -> list[Workload]:
    """The smallest call, by one size after the other, for which a condition holds as for `found`, and a larger one.

    [] if they are too large to be run.
    """
    sizes, free = axis_sizes(workloads), set(free_sizes(workloads))
    setting = {size: found.tensors[tensor].shape[axis] for (tensor, axis), size in sizes.items() if size in free}
    unit = _UNIT if all(n % _UNIT == 0 for n in setting.values()) else 1
    ascending = sorted(setting, key=lambda each: setting[each])
    for size in ascending:
        steps = range(max(unit, 2), setting[size], unit)
        place = bisect_left(steps, True, key=lambda n: holds(resized(workloads, setting | {size: n})))
        setting |= {size: [*steps[place : place + 1], setting[size]][0]}
    last = ascending[-1:]
    least, *more = [resized(workloads, setting | {size: n * setting[size] for size in last}) for n in (1, *_GROWTH)]
    larger = [each for each in more if count_elements(each) <= _MOST_TRIED and holds(each)]
    return [least, larger[0]] if larger and holds(least) else []


def are_right(calls: Sequence[Workload], run: Callable[[Workload, str], object]) -> bool:
    """False if the candidate cannot be judged on `smaller_calls`. Raises: Rejected: it is wrong on one."""
    for workload, distribution in ((calls[0], "normal"), (calls[0], "columns"), (calls[1], "normal")):
        try:
            run(workload, distribution)
        except Rejected as rejected:
            if rejected.reason in (Reason.WRONG_VALUES, Reason.DOES_NOT_RUN, Reason.DOES_NOT_COMPILE):
                raise
            if distribution == "normal" or rejected.reason is not Reason.ORACLE_FAILED:
                return False
    return True


def new_argument(log: Sequence[str], verified: Sequence[str]) -> str:
    """The first of `new_arguments`; "" if there is none."""
    return next(new_arguments(log, verified), "")


def new_arguments(log: Sequence[str], verified: Sequence[str]) -> Iterator[str]:
    """Flags that no verified launch had, and other numbers where all had one."""
    yield from sorted(_flags(log) - _flags(verified))
    known_numbers = _numbers(verified)
    for name, values in _numbers(log).items():
        known = known_numbers.get(name, set())
        if len(known) == 1 and values != known:
            yield f"{name} other than {min(known)}"


def _plan_one(planner: Planner, *workloads: Workload | None) -> Plan | None:
    """The plan of the first of these calls that has one."""
    calls = (PlannedCall(each.args, each.kwargs, each.tensors) for each in workloads if each is not None)
    return next((plan for call in calls if (plan := _plan(planner, call))), None)


def _plan(planner: Planner, call: PlannedCall) -> Plan | None:
    """The plan of a call; None if it raises, or takes too long. Raises: Unsupported."""
    try:
        plan = planner.plan(call)
    except (Raised, TooLong):
        return None
    return None if any(exceeds_grid(each.grid) for each in plan.launches) else plan


def _larger_calls(workloads: Sequence[Workload]) -> list[tuple[Workload, Workload | None]]:
    """Calls with medium sizes, in which loops iterate several times, and calls with large sizes.

    Each has an alternative with multiples of 64, or None, for candidates that reject odd sizes.
    """
    fewer = _ELEMENTS // 4
    uniform = (call for call in (wide(workloads, fewer), square(workloads, fewer)) if call is not None)
    odd, even = (large(workloads, _ELEMENTS, unit) for unit in (1, _UNIT))
    medium = (call for call in set_each(workloads, _MEDIUM) if count_elements(call) <= _ELEMENTS)
    return [*((call, None) for call in medium), *zip(odd, even, strict=True), *((call, None) for call in uniform)]


def iterations(known: Iterable[Plan]) -> dict[int, set[int]]:
    """The numbers of iterations that each loop had in known calls, by its line."""
    tried: dict[int, set[int]] = {}
    for line, count in (each for plan in known for each in counts(plan)):
        tried.setdefault(line, set()).add(count)
    return tried


def other_iterations(plan: Plan, tried: Mapping[int, set[int]]) -> str:
    """A loop that always had one number of iterations, and has another; "" if there is none."""
    for line, count in counts(plan):
        seen = tried.get(line, set())
        if len(seen) < 2 and count not in seen:
            return f"the loop in line {line} has {count} iterations in place of {min(seen, default=0)}"
    return ""


def _divergence(steps: Sequence[str], before: Sequence[str]) -> str:
    """The first step at which two ways differ."""
    step = next((at for at, pair in enumerate(zip(steps, before, strict=False)) if pair[0] != pair[1]), None)
    if step is not None:
        return f"{steps[step]} in place of {before[step]}, its step {step + 1}"
    more = [*max(steps, before, key=len), "other iterations"][min(len(steps), len(before))]
    return f"{len(steps)} steps in place of {len(before)}, {more} {'more' if len(steps) > len(before) else 'less'}"


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


def run_large(reference: Reference) -> None:
    """Run the kernels for a large input on a GPU. Raises: Rejected: they fault, or do not terminate.

    A candidate that cannot be traced there, or that needs more memory than the GPU has, passes.
    """
    task, tensors, sandbox = reference.task, reference.tensors, reference.sandbox
    workload = wide(task.workloads, _ELEMENTS // 4) if task.shape_general else None
    if workload is None or sandbox.gpus is None:
        return
    limits = replace(reference.settings.limits, wall_s=_LARGE_S, cpu_s=int(_LARGE_S))
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
