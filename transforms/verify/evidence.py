"""Rejections, and checks that the kernels computed the outputs: launches, operators outside of kernels, the ghost run.

The ghost run repeats the first trial without launching any kernel.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from kernelquarry.filters.lint import same_operator
from kernelquarry.pipeline.sandbox import Report, Status
from kernelquarry.pipeline.sandbox.executor.program import MAX_GRID
from kernelquarry.pipeline.sandbox.jobs.calls import Launch
from kernelquarry.pipeline.sandbox.jobs.compile import CompiledCall, CompileReply
from kernelquarry.pipeline.sandbox.jobs.kind import Reply
from kernelquarry.pipeline.sandbox.jobs.run_trials import TrialsReply
from kernelquarry.pipeline.sandbox.judge import Element
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Purity

from .task import Call, PlannedTrial, Task

_EVIDENCE = 500  # characters
_ARGUMENT = 60  # characters of a launch argument in evidence
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
    reasons = {
        Status.RAISED: raised,
        Status.TIMED_OUT: Reason.TIMED_OUT,
        Status.OUT_OF_MEMORY: Reason.OUT_OF_MEMORY,
        Status.CRASHED: Reason.CRASHED,
    }
    if report.reply is None:
        raise Rejected(reasons[report.status], report.error)
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
    launches = [_launches(trial) for trial in reply.launches]
    names = tuple(sorted({name for trial in launches for name, _ in trial}))
    if not all(launches):
        raise Rejected(Reason.OUTPUT_NOT_FROM_KERNEL, "a call launched no kernel")
    for name, grid in (launch for trial in launches for launch in trial):
        if any(size > largest for size, largest in zip(grid, MAX_GRID, strict=True)):
            raise Rejected(Reason.DOES_NOT_RUN, f"{name} is launched on a grid of {grid}, the largest is {MAX_GRID}")
    if idle := sorted(set(task.kernels) - set(names)):
        raise Rejected(Reason.OUTPUT_NOT_FROM_KERNEL, f"never launched: {', '.join(idle)}")
    operators = {_operator(name) for name in reply.operators}
    declared = {_operator(name) for name in task.extern_ops} if task.purity == Purity.MIXED else set()
    # Some operators have other names on a GPU.
    if hidden := sorted(name for name in operators if not any(same_operator(name, each) for each in declared)):
        raise Rejected(Reason.OUTPUT_NOT_FROM_KERNEL, f"computes outside its kernels with {', '.join(hidden)}")
    outputs = len(reply.trials[0].strides) + len(reply.trials[0].mutated)
    if kept and (task.purity == Purity.PURE or len(kept) == outputs):
        raise Rejected(Reason.OUTPUT_NOT_FROM_KERNEL, f"outputs {kept} are right although no kernel ran")
    return launches, names


def check_launches_agree(
    reply: CompileReply,
    target: str,
    calls: Sequence[Sequence[Launch]],
    launch_logs: Sequence[Sequence[str]],
) -> None:
    """Check that the kernels compiled for the target, and that forward made the same launches.

    Args:
        calls: launches of each trial.
        launch_logs: launches of each trial with their arguments; () if the engine does not log them.

    Raises:
        Rejected: a kernel does not compile, or forward makes other launches when compiled.
    """
    found = reply.targets.get(target, ())
    if not found:
        raise Rejected(Reason.DOES_NOT_COMPILE, f"{target}: None")
    for call in found:
        if call.trial not in range(len(calls)):
            raise Rejected(Reason.CRASHED, f"the candidate's guest compiled trial {call.trial} of {len(calls)}")
        where = f"{target}, trial {call.trial}" if call.trial else target
        _check_compiled(call, where, calls[call.trial], launch_logs[call.trial] if launch_logs else None)


def check_logged(reply: TrialsReply, trials: int) -> None:
    """Raises: Rejected: the reply has the launches of another number of trials."""
    if len(reply.launches) != trials or len(reply.launch_logs) not in (0, trials):
        found = f"launches of {len(reply.launches)} trials and launch logs of {len(reply.launch_logs)}, not of {trials}"
        raise Rejected(Reason.CRASHED, f"the candidate's guest gave no proper reply: {found}")


def _check_compiled(
    call: CompiledCall, where: str, launches: Sequence[Launch], launch_log: Sequence[str] | None
) -> None:
    if call.error:
        raise Rejected(Reason.DOES_NOT_COMPILE, f"{where}: {call.error}")
    if call.failed:
        raise Rejected(Reason.DOES_NOT_COMPILE, f"{where}: a launch failed, and forward went on: {call.failed[0]}")
    compiled = _launches(call.launches)
    if call.without_room:  # the autotuner selects another configuration, with other grids and arguments
        compiled, launches, launch_log = _without_grids(compiled), _without_grids(launches), None
    if compiled != launches:
        raise Rejected(Reason.NOT_DETERMINISTIC, f"launches for {where} differ from those in the interpreter")
    if launch_log is not None and (other := difference(call.launch_log, launch_log)):
        raise Rejected(Reason.NOT_DETERMINISTIC, f"launches for {where} differ from those in the interpreter: {other}")


def _without_grids(launches: Sequence[Launch]) -> list[Launch]:
    return [(name, ()) for name, _ in launches]


def difference(new: Sequence[str], old: Sequence[str]) -> str:
    """The first launch with another argument, with both values; "" if the launch logs are equal."""
    for one, other in zip(new, old, strict=False):
        if one != other:
            equal = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
            start = max(one.rfind(mark, 0, equal) for mark in (", ", "(")) + 1
            argument, before = (text[start:][:_ARGUMENT].strip() for text in (one, other))
            return f"{one.partition('[')[0]}: {argument} in place of {before}"
    return "" if len(new) == len(old) else f"{len(new)} launches in place of {len(old)}"


def _launches(claimed: Sequence[Launch]) -> list[Launch]:
    """The launches, each grid with three sizes."""
    return [(name, (*grid, 1, 1)[:3]) for name, grid in claimed]


def _operator(name: str) -> str:
    """`convolution` for `aten.convolution`, `aten.convolution.out` and `extern_kernels.convolution`."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else parts[0]
