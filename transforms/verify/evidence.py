"""Rejections, and checks that the kernels computed the outputs: launches, operators outside of kernels, the ghost run.

The ghost run repeats the first trial without launching any kernel.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import takewhile
from typing import Any

from kernelquarry.filters.lint import same_operator
from kernelquarry.pipeline.sandbox import Report, Status
from kernelquarry.pipeline.sandbox.executor.program import MAX_GRID
from kernelquarry.pipeline.sandbox.judge import Element
from kernelquarry.pipeline.sandbox.observation import MalformedReply, expect
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Purity

from .task import PlannedTrial, Task

_EVIDENCE = 500  # characters
_ARGUMENT = 60  # characters of a launch argument in evidence
# Evidence is published, so folders of this machine and addresses of this run are removed.
_FOLDERS = re.compile(r"(?<![\w./])/(?:[\w.+@-]+/)+")
_ADDRESSES = re.compile(r"\b0x[0-9a-f]{6,}\b")

Launch = tuple[str, tuple[int, ...]]  # kernel and grid


class Rejected(Exception):
    """The candidate is not verified: the reason, the evidence, and the failing trial and its worst element if known."""

    def __init__(
        self, reason: Reason, found: str, trial: PlannedTrial | None = None, element: Element | None = None
    ) -> None:
        found = _ADDRESSES.sub("0x?", _FOLDERS.sub("", found))
        evidence = f"workload {trial.workload}, {trial.distribution}: {found}" if trial else found
        super().__init__(reason, evidence)
        self.reason, self.evidence, self.found = reason, evidence[:_EVIDENCE], found[:_EVIDENCE]
        self.trial, self.element = trial, element


class InputRejected(Exception):
    """The module raises on `trials`, on which it is allowed to."""

    def __init__(self, trials: list[int]) -> None:
        super().__init__(trials)
        self.trials = trials


def rejected_trials(reply: dict[str, Any]) -> list[int]:
    """Numbers of the trials on which the module raised, from a guest's reply. Raises: Rejected: malformed reply."""
    try:
        return [expect(index, int) for index in expect(reply.get("refused", []), list)]
    except MalformedReply as error:
        raise Rejected(Reason.CRASHED, f"a guest gave no proper reply: {error}") from error


def reply_of(report: Report, raised: Reason) -> dict[str, Any]:
    """The guest's reply.

    Args:
        raised: reason for a guest that ended with an exception.

    Raises:
        Rejected: the guest sent no reply.
    """
    reasons = {
        Status.RAISED: raised,
        Status.TIMED_OUT: Reason.TIMED_OUT,
        Status.OUT_OF_MEMORY: Reason.OUT_OF_MEMORY,
        Status.CRASHED: Reason.CRASHED,
    }
    if report.reply is None:
        raise Rejected(reasons[report.status], report.error)
    return report.reply


def check_kernels(task: Task, reply: dict[str, Any], kept: list[int]) -> tuple[list[list[Launch]], tuple[str, ...]]:
    """The launches of each trial, and the names of all kernels that were launched.

    Args:
        kept: numbers of the outputs that are right in the ghost run.

    Raises:
        Rejected: the kernels did not compute the outputs, or PyTorch helped with operators that are not declared.
    """
    if reply.get("failed"):
        raise Rejected(Reason.DOES_NOT_RUN, f"a launch failed, and forward went on: {reply['failed'][0]}")
    launches = [_launches(trial) for trial in reply["launches"]]
    names = tuple(sorted({name for trial in launches for name, _ in trial}))
    if not all(launches):
        raise Rejected(Reason.OUTPUT_NOT_FROM_KERNEL, "a call launched no kernel")
    for name, grid in (launch for trial in launches for launch in trial):
        if any(size > largest for size, largest in zip(grid, MAX_GRID, strict=True)):
            raise Rejected(Reason.DOES_NOT_RUN, f"{name} is launched on a grid of {grid}, the largest is {MAX_GRID}")
    if idle := sorted(set(task.kernels) - set(names)):
        raise Rejected(Reason.OUTPUT_NOT_FROM_KERNEL, f"never launched: {', '.join(idle)}")
    operators = {_operator(name) for name in reply["operators"]}
    declared = {_operator(name) for name in task.extern_ops} if task.purity == Purity.MIXED else set()
    # Some operators have other names on a GPU.
    if hidden := sorted(name for name in operators if not any(same_operator(name, each) for each in declared)):
        raise Rejected(Reason.OUTPUT_NOT_FROM_KERNEL, f"computes outside its kernels with {', '.join(hidden)}")
    outputs = len(reply["trials"][0]["strides"]) + len(reply["trials"][0]["mutated"])
    if kept and (task.purity == Purity.PURE or len(kept) == outputs):
        raise Rejected(Reason.OUTPUT_NOT_FROM_KERNEL, f"outputs {kept} are right although no kernel ran")
    return launches, names


def check_launches_agree(
    reply: dict[str, Any],
    targets: Sequence[str],
    calls: Sequence[Sequence[Launch]],
    launch_logs: Sequence[list[str]],
    needed: Collection[str],
) -> tuple[str, ...]:
    """The targets for which the kernels compiled.

    Args:
        calls: launches of each trial.
        launch_logs: launches of each trial with their arguments; () if the engine does not log them.
        needed: targets for which the kernels must compile.

    Raises:
        Rejected: a kernel does not compile for a needed target, or forward makes other launches when compiled.
    """
    compiled = []
    for target in targets:
        first = reply.get(target)
        if not isinstance(first, dict) or "error" in first:
            if target in needed:
                raise Rejected(Reason.DOES_NOT_COMPILE, f"{target}: {first and first.get('error')}")
            continue
        others = {int(number): call for number, call in first.get("others", {}).items()}
        for number, call in ({0: first} | others).items():
            where = f"{target}, trial {number}" if number else target
            _check_compiled(call, where, calls[number], launch_logs[number] if launch_logs else None)
        compiled.append(target)
    return tuple(compiled)


def read_launch_logs(reply: dict[str, Any], trials: int) -> list[list[str]]:
    """Launches of each trial with their arguments; [] if the engine does not log them. Raises: Rejected."""
    try:
        logs = [[expect(one, str) for one in expect(call, list)] for call in expect(reply.get("told", []), list)]
    except MalformedReply as error:
        raise Rejected(Reason.CRASHED, f"the candidate's guest gave no proper reply: {error}") from error
    if logs and len(logs) != trials:
        raise Rejected(Reason.CRASHED, f"launch logs of {len(logs)} trials instead of {trials}")
    return logs


def _check_compiled(call: dict[str, Any], where: str, launches: Sequence[Launch], launch_log: list[str] | None) -> None:
    if "error" in call:
        raise Rejected(Reason.DOES_NOT_COMPILE, f"{where}: {call['error']}")
    if call.get("failed"):
        raise Rejected(Reason.DOES_NOT_COMPILE, f"{where}: a launch failed, and forward went on: {call['failed'][0]}")
    compiled = _launches(call["launches"])
    if call.get("without_room"):  # the autotuner selects another configuration, with other grids and arguments
        compiled, launches, launch_log = (
            [(name, ()) for name, _ in compiled],
            [(name, ()) for name, _ in launches],
            None,
        )
    if compiled != launches:
        raise Rejected(Reason.NOT_DETERMINISTIC, f"launches for {where} differ from those in the interpreter")
    if launch_log is not None and (other := difference(call["told"], launch_log)):
        raise Rejected(Reason.NOT_DETERMINISTIC, f"launches for {where} differ from those in the interpreter: {other}")


def difference(new: Sequence[str], old: Sequence[str]) -> str:
    """The first launch with another argument, with both values; "" if the launch logs are equal."""
    for one, other in zip(new, old, strict=False):
        if one != other:
            equal = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
            start = max(one.rfind(mark, 0, equal) for mark in (", ", "(")) + 1
            argument, before = (text[start:][:_ARGUMENT].strip() for text in (one, other))
            return f"{one.partition('[')[0]}: {argument} in place of {before}"
    return "" if len(new) == len(old) else f"{len(new)} launches in place of {len(old)}"


def _launches(claimed: Any) -> list[Launch]:
    return [(str(name), tuple(int(n) for n in (*grid, 1, 1)[:3])) for name, grid in claimed]


def _operator(name: str) -> str:
    """`convolution` for `aten.convolution`, `aten.convolution.out` and `extern_kernels.convolution`."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else parts[0]
