"""Rejections, and checks that the kernels computed the outputs: launches, operators outside of kernels, the ghost run.

The ghost run repeats the first trial without launching any kernel.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from kernelquarry.filters.language.operator_names import same_operator
from kernelquarry.pipeline.sandbox import Report, Status
from kernelquarry.pipeline.sandbox.executor.program import MAX_GRID, exceeds_grid
from kernelquarry.pipeline.sandbox.jobs.calls import Launch
from kernelquarry.pipeline.sandbox.jobs.compile import CompiledCall, CompileReply
from kernelquarry.pipeline.sandbox.jobs.kind import Reply
from kernelquarry.pipeline.sandbox.jobs.run_trials import TrialsReply
from kernelquarry.pipeline.sandbox.judge import Element
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Purity

from .task import Call, PlannedTrial, Task

_EVIDENCE = 500  # characters
# Evidence is published, so folders of this machine and addresses of this run are removed.
_FOLDERS = re.compile(r"(?<![\w./])/(?:[\w.+@-]+/)+")
_ADDRESSES = re.compile(r"\b0x[0-9a-f]{6,}\b")


class Rejected(Exception):
    """The candidate is not verified: the reason, the evidence, and the failing trial or call and its worst element."""

    def __init__(
        self,
        reason: Reason,
        found: str,
        trial: PlannedTrial | None = None,
        element: Element | None = None,
        call: Call | None = None,
    ) -> None:
        found = _ADDRESSES.sub("0x?", _FOLDERS.sub("", found))
        evidence = f"workload {trial.workload}, {trial.distribution}: {found}" if trial else found
        super().__init__(reason, evidence)
        self.reason, self.evidence, self.found = reason, evidence[:_EVIDENCE], found[:_EVIDENCE]
        self.trial, self.element, self.call = trial, element, call


class InputRejected(Exception):
    """The module raises on `trials`, on which it is allowed to."""

    def __init__(self, trials: Sequence[int]) -> None:
        super().__init__(trials)
        self.trials = trials


def reply_of(report: Report[Reply], raised: Reason) -> Reply:
    """The guest's reply. Raises: Rejected: there is none; `raised` is the reason if the guest raised an exception."""
    if report.reply is None:
        raise Rejected(raised if report.status is Status.RAISED else Reason(report.status.value), report.error)
    return report.reply


def check_kernels(task: Task, reply: TrialsReply, kept: list[int]) -> tuple[list[list[Launch]], tuple[str, ...]]:
    """Check that the kernels computed the outputs, with no operators of PyTorch but declared ones. Raises: Rejected.

    Args:
        kept: numbers of the outputs that are right in the ghost run.

    Returns:
        The launches of each trial, and the names of all launched kernels.
    """
    if reply.failed:
        raise Rejected(Reason.DOES_NOT_RUN, f"a launch failed, and forward went on: {reply.failed[0]}")
    launches = [[(name, (*grid, 1, 1)[:3]) for name, grid in trial] for trial in reply.launches]
    names = tuple(sorted({name for trial in launches for name, _ in trial}))
    if not all(launches):
        raise Rejected(Reason.OUTPUT_NOT_FROM_KERNEL, "a call launched no kernel")
    for name, grid in (launch for trial in launches for launch in trial):
        if exceeds_grid(grid):
            raise Rejected(Reason.DOES_NOT_RUN, f"{name} is launched on a grid of {grid}, the largest is {MAX_GRID}")
    if task.training or not task.by_model:  # others may have kernels for other sizes
        check_all_launched(task.kernels, names)
    operators = {_operator(name) for name in reply.operators}
    declared = {_operator(name) for name in task.extern_ops} if task.purity == Purity.MIXED else set()
    # Some operators have other names on a GPU.
    if hidden := sorted(name for name in operators if not any(same_operator(name, each) for each in declared)):
        raise Rejected(
            Reason.OUTPUT_NOT_FROM_KERNEL, f"computes outside its kernels with {', '.join(hidden)}: do so in a kernel"
        )
    outputs = len(reply.trials[0].strides) + len(reply.trials[0].mutated)
    if kept and (task.purity == Purity.PURE or len(kept) == outputs):
        raise Rejected(Reason.OUTPUT_NOT_FROM_KERNEL, f"outputs {kept} are right although no kernel ran")
    return launches, names


def check_all_launched(kernels: Collection[str], launched: Collection[str]) -> None:
    """Raises: Rejected: a kernel was not launched."""
    if idle := sorted(set(kernels).difference(launched)):
        raise Rejected(Reason.OUTPUT_NOT_FROM_KERNEL, f"never launched: {', '.join(idle)}")


def check_compiled(reply: CompileReply, target: str) -> None:
    """Check that all launches of the calls compiled for the target. Raises: Rejected."""
    for call in reply.targets.get(target, ()) or [CompiledCall(0, "no reply")]:
        where = f"{target}, trial {call.trial}" if call.trial else target
        if call.error:
            raise Rejected(Reason.DOES_NOT_COMPILE, f"{where}: {call.error}")
        if call.failed:
            raise Rejected(Reason.DOES_NOT_COMPILE, f"{where}: a launch failed, and forward went on: {call.failed[0]}")


def check_logged(reply: TrialsReply, trials: int) -> None:
    """Raises: Rejected: the reply has the launches of another number of trials."""
    if len(reply.launches) != trials:
        found = f"the candidate's guest gave no proper reply: launches of {len(reply.launches)} trials, not of {trials}"
        raise Rejected(Reason.CRASHED, found)


def _operator(name: str) -> str:
    """`convolution` for `aten.convolution`, `aten.convolution.out` and `extern_kernels.convolution`."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else parts[0]
