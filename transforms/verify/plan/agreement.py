"""Compare plans with what the guest's own Python did in the same calls."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kernelquarry.filters.language.operator_names import same_operator
from kernelquarry.pipeline.sandbox.jobs.calls import ObservedCall
from kernelquarry.pipeline.sandbox.jobs.run_trials import TrialsReply

from ..task import PlannedTrial, Task
from .launch_plan import Plan
from .planner import PlannedCall, Planner
from .values import Raised


def planned_calls(task: Task, trials: Sequence[PlannedTrial]) -> list[PlannedCall]:
    """The trials as calls to plan."""
    calls = task.calls
    return [
        PlannedCall(call.args, call.kwargs, call.tensors, trial.strided, number)
        for number, trial in enumerate(trials)
        for call in (calls[trial.workload],)
    ]


def disagreement(planner: Planner, task: Task, trials: Sequence[PlannedTrial], reply: TrialsReply) -> str:
    """The first difference between the plans of the trials and what the guest's Python did; "" for none.

    Compared are launches with grids, arguments, strides and options (of a GPU, and with operators, kernels and grids
    alone), outputs and what they share memory with, the trials on which the candidate raises, and the operators of
    PyTorch that ran.

    Raises:
        Unsupported: a trial has no plan.
    """
    operators = set[str]()
    for number, call in enumerate(planned_calls(task, trials)):
        try:
            plan = planner.plan(call)
        except Raised as error:
            if number not in reply.refused:
                return f"trial {number}: the plan raises {error}"
            continue
        operators |= set(plan.operators)
        if number in reply.refused:
            if str(number) in reply.broken:
                continue  # a kernel raised
            return f"trial {number}: Python raises, the plan does not"
        if not reply.refused and (found := _difference(plan, reply, number)):
            return f"trial {number}: {found}"
    return "" if reply.refused else _operators(operators, reply.operators)


def _difference(plan: Plan, reply: TrialsReply, number: int) -> str:
    if reply.launch_logs and not plan.operators:
        log, observed = plan.launch_log(), reply.launch_logs[number]
    else:  # a GPU ran it, or strides of axes with one element depend on the device
        log = tuple(f"{each.kernel}{_three(each.grid)}" for each in plan.launches)
        observed = tuple(f"{name}{_three(grid)}" for name, grid in reply.launches[number])
    for mine, its in zip(log, observed, strict=False):
        if mine != its:
            return f"the plan launches {mine}, Python {its}"
    if len(log) != len(observed):
        return f"the plan has {len(log)} launches, Python {len(observed)}"
    return _outputs(plan, reply.trials[number])


def _three(grid: Sequence[int]) -> list[int]:
    return [*grid, 1, 1][:3]


def _outputs(plan: Plan, call: ObservedCall) -> str:
    pairs = {
        "tree": (plan.tree, call.tree),
        "strides": (tuple(view.strides for view in plan.outputs), call.strides),
        "shares": (plan.shares(), call.shares),
    }
    different = [f"{name} {mine}, Python {its}" for name, (mine, its) in pairs.items() if mine != its]
    return f"outputs of the plan have {different[0]}" if different else ""


def _operators(planned: Collection[str], ran: Collection[str]) -> str:
    only_planned, only_ran = _without(planned, ran), _without(ran, planned)
    return f"operators {only_planned} of the plan alone, {only_ran} of Python alone" if only_planned or only_ran else ""


def _without(some: Collection[str], others: Collection[str]) -> list[str]:
    """Those with no other of the same meaning: a GPU runs `cudnn_batch_norm` where a plan has `native_batch_norm`."""
    names = [other.removeprefix("aten.") for other in others]
    return sorted(one for one in some if not any(same_operator(one.removeprefix("aten."), name) for name in names))
