"""What shows that the kernels did it: launches, operators outside of them, and the replay without them."""

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
_GIVEN = 60  # characters of what a launch was given
# What messages tell of the machine, and of this run alone: evidence is published.
_FOLDERS = re.compile(r"(?<![\w./])/(?:[\w.+@-]+/)+")
_ADDRESSES = re.compile(r"\b0x[0-9a-f]{6,}\b")

Launch = tuple[str, tuple[int, ...]]  # kernel and grid


class Rejected(Exception):
    """A candidate that is not verified: the reason, and what shows it.

    `trial` is the call on which that was found, `element` the worst of its values, where there are such.
    """

    def __init__(
        self, reason: Reason, found: str, trial: PlannedTrial | None = None, element: Element | None = None
    ) -> None:
        found = _ADDRESSES.sub("0x?", _FOLDERS.sub("", found))
        evidence = f"workload {trial.workload}, {trial.distribution}: {found}" if trial else found
        super().__init__(reason, evidence)
        self.reason, self.evidence, self.found = reason, evidence[:_EVIDENCE], found[:_EVIDENCE]
        self.trial, self.element = trial, element


class InputRejected(Exception):
    """The module raises on `trials`, and may."""

    def __init__(self, trials: list[int]) -> None:
        super().__init__(trials)
        self.trials = trials


def refused_in(reply: dict[str, Any]) -> list[int]:
    """The numbers of trials that a guest says it was refused. Raises: Rejected: it names none that way."""
    try:
        return [expect(index, int) for index in expect(reply.get("refused", []), list)]
    except MalformedReply as error:
        raise Rejected(Reason.CRASHED, f"a guest gave no proper reply: {error}") from error


def reply_of(report: Report, raised: Reason) -> dict[str, Any]:
    """The guest's reply; `raised` is what an exception in it means.

    Raises:
        Rejected: there is none.
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

    `kept`: numbers of the outputs that stay right when no kernel runs.

    Raises:
        Rejected: the kernels did not do it, or not alone although the candidate says so.
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
    # A GPU has some of them by other names.
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
    told: Sequence[list[str]],
    needed: Collection[str],
) -> tuple[str, ...]:
    """The targets that it compiled for, where `forward` launched what it launched in the interpreter.

    Args:
        calls: the launches of each trial.
        told: the same with all that they were given; () if what ran them does not say.
        needed: the targets that it has to compile for; without the others it does.

    Raises:
        Rejected: a kernel does not compile, or the candidate behaves otherwise when it is compiled.
    """
    compiled = []
    for target in targets:
        found = reply.get(target)
        if not isinstance(found, dict) or "error" in found:
            if target in needed:
                raise Rejected(Reason.DOES_NOT_COMPILE, f"{target}: {found and found.get('error')}")
            continue
        others = {int(number): call for number, call in found.get("others", {}).items()}
        for number, call in ({0: found} | others).items():
            where = f"{target}, trial {number}" if number else target
            _check_compiled(call, where, calls[number], told[number] if told else None)
        compiled.append(target)
    return tuple(compiled)


def read_told(reply: dict[str, Any], trials: int) -> list[list[str]]:
    """The launches of each trial with all that they were given; [] if what ran them does not say. Raises: Rejected."""
    try:
        told = [[expect(one, str) for one in expect(call, list)] for call in expect(reply.get("told", []), list)]
    except MalformedReply as error:
        raise Rejected(Reason.CRASHED, f"the candidate's guest gave no proper reply: {error}") from error
    if told and len(told) != trials:
        raise Rejected(Reason.CRASHED, f"{len(told)} trials told of {trials}")
    return told


def _check_compiled(found: dict[str, Any], where: str, launches: Sequence[Launch], told: list[str] | None) -> None:
    if "error" in found:
        raise Rejected(Reason.DOES_NOT_COMPILE, f"{where}: {found['error']}")
    if found.get("failed"):
        raise Rejected(Reason.DOES_NOT_COMPILE, f"{where}: a launch failed, and forward went on: {found['failed'][0]}")
    compiled = _launches(found["launches"])
    if found.get("without_room"):  # what a tuner takes instead is launched otherwise
        compiled, launches, told = [(name, ()) for name, _ in compiled], [(name, ()) for name, _ in launches], None
    if compiled != launches:
        raise Rejected(Reason.NOT_DETERMINISTIC, f"launches for {where} differ from those in the interpreter")
    if told is not None and (other := difference(found["told"], told)):
        raise Rejected(Reason.NOT_DETERMINISTIC, f"launches for {where} differ from those in the interpreter: {other}")


def difference(new: Sequence[str], old: Sequence[str]) -> str:
    """The first launch that is given something else, and what; "" if none is."""
    for one, other in zip(new, old, strict=False):
        if one != other:
            alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
            start = max(one.rfind(mark, 0, alike) for mark in (", ", "(")) + 1
            given, before = (text[start:][:_GIVEN].strip() for text in (one, other))
            return f"{one.partition('[')[0]}: {given} in place of {before}"
    return "" if len(new) == len(old) else f"{len(new)} launches in place of {len(old)}"


def _launches(claimed: Any) -> list[Launch]:
    return [(str(name), tuple(int(n) for n in (*grid, 1, 1)[:3])) for name, grid in claimed]


def _operator(name: str) -> str:
    """`convolution` for `aten.convolution`, `aten.convolution.out` and `extern_kernels.convolution`."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else parts[0]
