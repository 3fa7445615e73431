"""The reference's answers to the trials, and what may be said of a candidate's beside them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import torch

from kernelquarry.pipeline.sandbox import Job, Sandbox
from kernelquarry.pipeline.sandbox.inputs import NAMED
from kernelquarry.pipeline.sandbox.jobs.reference import REFERENCE
from kernelquarry.pipeline.sandbox.judge import (
    ErrorBounds,
    contract_difference,
    impostor_answers,
    same_bits,
    same_bytes,
)
from kernelquarry.pipeline.sandbox.observation import MalformedReply, Observation, expect, read_observation
from kernelquarry.pipeline.sandbox.protocol import Tensors
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import ENTRY_POINT, Trial, Workload

from .evidence import InputRejected, Launch, Rejected, check_kernels, read_told, refused_in, reply_of
from .task import PlannedTrial, Task, VerifySettings, describe, nudges, terms

_TIES = ("sparse", "assorted", NAMED)  # where values are equal
_NEAR_TIES = ("scaled", "faint")  # where those that a softmax, say, gives are
# PyTorch promises the first of equals, and the side of an edge,
_FIRST = re.compile(r"\b(argmax|argmin|max|min|bucketize|searchsorted)\(")
_SORTED = re.compile(r"\b(a?r?g?sort|msort|topk)\(")  # and nothing of equals here,
_ROUNDED = re.compile(  # or here, or of what rounds to an integer
    r"\b(kthvalue|\w*median|mode|cummax|cummin|unique\w*|round|floor|ceil|trunc"
    r"|hist\w+|quantize\w*|\w*pool\w*)\(|\.(long|int|short|char|byte|to|type)\("
)
# A product of numbers of all sizes leaves the range of float32 in one order, and not in another.
_PRODUCT = re.compile(r"(?<!\bmath)(?<!\bnp)\.(cum)?prod\(")
_LIKE = 1e-4  # of the norm of a state's entry
_NUDGED = ("nudged0", "nudged1")


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What all trials of a candidate that passes have shown."""

    trials: tuple[Trial, ...]
    deterministic: bool
    launches: list[list[Launch]]  # of each trial
    told: list[list[str]]  # the same with what they were given; empty if what ran them does not say
    kernels: tuple[str, ...]  # that were launched
    written: float


class Reference:
    """The reference's answers, and the comparison of a candidate's with them.

    `task`, `trials` and their `tensors`, as `draw` gives them, are what it was asked; `undrawn` are the entries of the
    state that no trial draws, as its constructor left them.
    """

    def __init__(
        self,
        task: Task,
        trials: Sequence[PlannedTrial],
        tensors: Tensors,
        sandbox: Sandbox,
        settings: VerifySettings,
        in_order: bool = False,
    ) -> None:
        """Run it in a guest. Raises: Rejected: it gives no proper reply.

        All of an input may be added up `in_order`, by atomics say, and come to little: see `nudges`.
        """
        self.task, self.trials, self.tensors = task, trials, tensors
        request = describe(task, trials) | {"code": task.python_code, "entry_point": ENTRY_POINT}
        request |= {"nudges": nudges(task, in_order), "half": task.is_half}
        request["ties"] = [index for index, trial in enumerate(trials) if self._is_tied(trial)]
        request["exact"] = [index for index, trial in enumerate(trials) if trial.distribution == NAMED]
        report = sandbox.run(Job(REFERENCE, request, tensors, settings.limits))
        reply = reply_of(report, Reason.ORACLE_FAILED)
        try:
            if refused := refused_in(reply):
                raise InputRejected(refused)
            self._state, self._indirect = reply["state"], frozenset(expect(reply["indirect"], list))
            left = {name: f"state.{name}" for name in self._state}
            self.undrawn = {name: report.tensors[key] for name, key in left.items() if key in report.tensors}
            runs = [
                {name: read_observation(call, report.tensors, f"{index}.{name}") for name, call in calls.items()}
                for index, calls in enumerate(reply["trials"])
            ]
            self._runs: list[dict[str, Observation]] = runs
            workloads = task.calls  # worked out anew each time
            called = [workloads[trial.workload] for trial in trials]
            pairs = list(enumerate(zip(called, runs, strict=True)))
            self._bounds = [self._error_bounds(index, call, run) for index, (call, run) in pairs]
            self._state_bounds = [self._error_bounds(index, call, self._left(run)) for index, (call, run) in pairs]
        except (MalformedReply, KeyError, TypeError, ValueError) as error:
            raise Rejected(Reason.CRASHED, f"the reference's guest gave no proper reply: {error}") from error
        self._counted = [
            index
            for index, bounds in enumerate(self._bounds)
            if bounds.is_decided and not self._is_open(index, runs[index]["eager"])
        ]

    def _is_open(self, index: int, eager: Observation) -> bool:
        """Whether nothing can be said: only integers come out, and may be any, or products that depend on the order of
        what is multiplied."""
        code, trial = self.task.python_code, self.trials[index]
        if trial.distribution == "assorted" and _PRODUCT.search(code):
            return True
        if trial.distribution in _NEAR_TIES and self.task.by_model:
            return _counts(eager) and _sorts(code)
        return self._any_integer(index) and _counts(eager) and all(map(_is_discrete, eager.values))

    def _any_integer(self, index: int) -> bool:
        """Whether integers that come out of a trial are nobody's promise, as values are equal there, or nearly so."""
        if self.trials[index].distribution not in _TIES:
            return False
        return index in self._indirect or _ROUNDED.search(self.task.python_code) is not None

    def _is_tied(self, trial: PlannedTrial) -> bool:
        """Whether it may depend on which of equal values counts, and that is not promised."""
        code = self.task.python_code
        if trial.distribution in _NEAR_TIES:
            return self.task.by_model and _sorts(code)
        first = trial.distribution != "sparse" and _FIRST.search(code) is not None
        return trial.distribution in _TIES and (first or _sorts(code))

    def with_candidate(self, code: str) -> Reference:
        """The same answers, for a candidate with another source."""
        other = copy(self)
        other.task = replace(self.task, triton_code=code)
        return other

    def of_other_calls(self) -> list[int]:
        """The trials that are the first of a call that is not the first trial's."""
        calls = [trial.workload for trial in self.trials]
        return [index for index, call in enumerate(calls) if call not in calls[:index]][1:]

    @property
    def keeps_inputs(self) -> bool:
        """Whether, in its first trial, it changes inputs or gives them back."""
        eager = self._runs[0]["eager"]
        return bool(eager.mutated) or any(eager.shares)

    def check_finite(self) -> None:
        """Raises: Rejected: too little of the trials is finite to say anything."""
        finite = [index for index, bounds in enumerate(self._bounds) if bounds.is_finite]
        if 0 not in finite or len(finite) < min(2, len(self.trials)):
            raise Rejected(Reason.ORACLE_FAILED, f"finite only in trials {finite} of {len(self.trials)}")

    def check_decided(self) -> None:
        """Raises: Rejected: a trial is not looked at, since honest runs disagree on what is finite there."""
        if len(self._counted) < len(self.trials):
            raise Rejected(Reason.ORACLE_FAILED, f"only trials {self._counted} of {len(self.trials)} are decided")

    def _error_bounds(self, index: int, workload: Workload, run: dict[str, Observation]) -> ErrorBounds:
        eager, oracle = run["eager"], run["oracle"]
        shapes = [tuple(value.shape) for value in eager.values]
        if shapes != [tuple(value.shape) for value in oracle.values]:
            raise Rejected(Reason.ORACLE_FAILED, "float64 and float32 give other shapes")
        nudged, summed = [run[name] for name in _NUDGED], terms(workload, self.task.state, shapes)
        tied, free = run.get("tied"), self._any_integer(index)
        if not self.task.is_half:
            return ErrorBounds(oracle, [eager, *nudged], summed, None, tied, free)
        return ErrorBounds(oracle, nudged, summed, eager, tied, free)

    def check_impostors(self) -> tuple[str, ...]:
        """The names of the impostors that were tried; each failed."""
        eager = self._runs[0]["eager"]
        stand_ins = {"other_inputs": self._runs[1]["eager"]} if len(self._runs) > 1 else {}
        if "other" in self._runs[0]:
            stand_ins["other_parameters"] = self._runs[0]["other"]
        inputs = [self.tensors[f"input.0.{i}"] for i in range(len(self.task.workloads[0].tensors))]
        answers = impostor_answers(eager, inputs, stand_ins)
        for name, values in answers.items():
            measure = self._bounds[0].measure(values)
            if measure.passes:
                evidence = f"{name}: error {measure.error:.3g}, allowed {measure.tolerance:.3g} ({measure.where})"
                raise Rejected(Reason.IMPOSTOR_PASSES, evidence)
        return tuple(sorted(answers))

    def conclude(self, reply: dict[str, Any], tensors: Tensors) -> Conclusion:
        """All that is asked of the trials, the repetition and the ghost of a candidate. Raises: Rejected."""
        trials, deterministic = self.compare(reply, tensors)
        self.check_later(tensors)
        kept = self._ghost_keeps(reply, tensors)
        launches, kernels = check_kernels(self.task, reply, kept)
        told = read_told(reply, len(self.trials))
        return Conclusion(trials, deterministic, launches, told, kernels, self._written(kept))

    def compare(self, reply: dict[str, Any], tensors: Tensors) -> tuple[tuple[Trial, ...], bool]:
        """The trials with their errors, and whether the repetition gave the same bytes. Raises: Rejected."""
        if "load_error" in reply:
            raise Rejected(Reason.DOES_NOT_LOAD, str(reply["load_error"]))
        self.check_state(reply)
        try:
            calls = expect(reply.get("trials"), list)
            runs = [read_observation(call, tensors, str(index)) for index, call in enumerate(calls)]
            repeat = read_observation(reply.get("repeat"), tensors, "repeat")
        except (MalformedReply, ValueError) as error:
            raise Rejected(Reason.CRASHED, f"the candidate's guest gave no proper reply: {error}") from error
        if len(runs) != len(self.trials):
            raise Rejected(Reason.CRASHED, f"{len(runs)} results of {len(self.trials)} trials")
        results = [self._trial(index, runs[index], Reason.WRONG_VALUES) for index in self._counted]
        self._trial(0, repeat, Reason.NOT_DETERMINISTIC)
        return tuple(results), same_bytes(repeat, runs[0])

    def check_state(self, reply: dict[str, Any]) -> None:
        """Raises: Rejected: the candidate's state, as its constructor left it, is another than the reference's."""
        if different := _state_difference(self._state, reply.get("state")):
            raise Rejected(Reason.STATE_DIFFERS, different)

    def _written(self, kept: Sequence[int]) -> float:
        """The share of the bytes of what the first call computed that is wrong without the kernels; `kept` is not."""
        run = self._runs[0]["eager"]
        sizes = [value.numel() * value.element_size() for value in run.values]
        own = [index for index in range(len(sizes)) if index >= len(run.shares) or not run.shares[index]]
        total = sum(sizes[index] for index in own)
        return sum(sizes[index] for index in own if index not in kept) / total if total else 1.0

    def _trial(self, index: int, observed: Observation, wrong: Reason) -> Trial:
        planned = self.trials[index]
        if difference := contract_difference(self._runs[index]["eager"], observed, planned.strided):
            raise Rejected(Reason.WRONG_CONTRACT, difference, planned)
        if left := self._wrong_state(index, observed):
            raise Rejected(wrong, left, planned)
        measure = self._bounds[index].measure(observed.values)
        if not measure.passes:
            found = f"error {measure.error:.3g}, allowed {measure.tolerance:.3g} ({measure.where})"
            raise Rejected(wrong, found, planned, self._bounds[index].worst_element(observed))
        return Trial(
            workload=planned.workload,
            seed=planned.seed,
            distribution=planned.distribution,
            error=measure.error,
            honest_error=measure.honest_error,
            tolerance=measure.tolerance,
        )

    def is_right(self, index: int, observed: Observation) -> bool:
        """Whether trial `index` would pass with it."""
        if contract_difference(self._runs[index]["eager"], observed, self.trials[index].strided):
            return False
        return not self._wrong_state(index, observed) and self._bounds[index].measure(observed.values).passes

    def _wrong_state(self, index: int, observed: Observation) -> str:
        """What the call leaves in the state that is not what the reference leaves; "" for nothing."""
        left = self._drawn(observed)
        if not left:
            return ""
        measure = self._state_bounds[index].measure(list(left.values()))
        names = ", ".join(left)
        return "" if measure.passes else f"error {measure.error:.3g}, allowed {measure.tolerance:.3g} (state {names})"

    def _left(self, run: dict[str, Observation]) -> dict[str, Observation]:
        """The same calls, with what they left in the state as all that they gave."""
        return {
            name: replace(call, outputs=tuple(self._drawn(call).values()), mutated={}) for name, call in run.items()
        }

    def _drawn(self, observed: Observation) -> dict[str, torch.Tensor]:
        """What the call left in state that is drawn: all else is what the calls before have made of it."""
        return {name: value for name, value in observed.changed.items() if f"state.0.{name}" in self.tensors}

    def check_later(self, tensors: Tensors) -> None:
        """The outputs of the first call are what they were, whatever was called since; but for views of state."""
        for index, owner in enumerate(self._runs[0]["eager"].shares):
            first, later = (tensors.get(f"{name}.output.{index}") for name in ("0", "later"))
            if first is None or later is None:
                raise Rejected(Reason.CRASHED, f"the candidate's guest gave no proper reply: no later output {index}")
            if not owner and not same_bits(later, first):
                raise Rejected(Reason.WRONG_CONTRACT, f"output {index} of the first call was changed by a later one")

    def _ghost_keeps(self, reply: dict[str, Any], tensors: Tensors) -> list[int]:
        """The numbers of the values that are right although no kernel ran, views of inputs or state excepted."""
        ghost, eager = reply.get("ghost"), self._runs[0]["eager"]
        if isinstance(ghost, dict) and "raised" in ghost:
            return []  # it could not go on without its kernels
        try:
            observed = read_observation(ghost, tensors, "ghost")
        except (MalformedReply, ValueError) as error:
            raise Rejected(Reason.CRASHED, f"the candidate's guest gave no proper reply: {error}") from error
        if contract_difference(eager, observed):
            return []
        shared = [index for index, owner in enumerate(eager.shares) if owner]
        return [index for index in self._bounds[0].unchanged(observed.values) if index not in shared]


def _sorts(code: str) -> bool:
    return any(pattern.search(code) for pattern in (_SORTED, _ROUNDED))


def _is_discrete(value: torch.Tensor) -> bool:
    return not value.is_floating_point() and not value.is_complex()


def _counts(observed: Observation) -> bool:
    """Whether integers come out."""
    return any(_is_discrete(value) and value.dtype != torch.bool for value in observed.values)


def _state_difference(reference: Any, candidate: Any) -> str:
    """The first entries that differ, by name; "" if none does."""
    if not isinstance(reference, dict) or not isinstance(candidate, dict):
        return "no state was reported"
    every = sorted(reference.keys() | candidate.keys())
    names = [name for name in every if not _same_entry(reference.get(name), candidate.get(name))]
    return f"{len(names)} entries differ: {', '.join(names[:5])}" if names else ""


def _same_entry(reference: Any, candidate: Any) -> bool:
    """What a constructor solves for, say, has other last bits from one process to the next: numbers may be off by so
    much."""
    if reference == candidate:
        return True
    if not isinstance(reference, dict) or not isinstance(candidate, dict):
        return False
    if any(reference.get(name) != candidate.get(name) for name in ("shape", "dtype")):
        return False
    old, new = (entry.get("sums") for entry in (reference, candidate))
    if not isinstance(old, list) or not isinstance(new, list) or len(old) != len(new):
        return False
    bound = _LIKE * float(reference.get("norm", 0.0))
    return all(isinstance(two, int | float) and abs(one - two) <= bound for one, two in zip(old, new, strict=True))
