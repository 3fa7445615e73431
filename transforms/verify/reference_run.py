"""Run the reference on the trials, and compare a candidate's outputs with its outputs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace

import torch

from kernelquarry.pipeline.sandbox import Job, Sandbox
from kernelquarry.pipeline.sandbox.inputs import ECHOED, KINDS_OF_VALUES, MASKS, NAMED
from kernelquarry.pipeline.sandbox.jobs.calls import Launch, ObservedCall, StateEntry
from kernelquarry.pipeline.sandbox.jobs.reference import REFERENCE, ReferenceRequest
from kernelquarry.pipeline.sandbox.jobs.run_trials import TrialsReply
from kernelquarry.pipeline.sandbox.judge import (
    ErrorBounds,
    contract_difference,
    impostor_answers,
    same_bits,
    same_bytes,
)
from kernelquarry.pipeline.sandbox.observation import MalformedReply, Observation, read_observation
from kernelquarry.pipeline.sandbox.protocol import Tensors
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Trial, Workload

from .evidence import InputRejected, Rejected, check_kernels, check_logged, reply_of
from .hints import hint
from .task import PlannedTrial, Task, VerifySettings, exact_values, nudges, terms, trial_calls

_TIES = ("sparse", ECHOED, *KINDS_OF_VALUES, NAMED)  # distributions with equal values
# Distributions on which computed values, of a softmax for example, can be equal.
_NEAR_TIES = ("scaled", "faint", "small")
# Operators for which PyTorch specifies the index of the first of equal values, or the side of a boundary.
_FIRST = re.compile(r"\b(argmax|argmin|max|min|bucketize|searchsorted)\(")
# Operators whose order of equal values is unspecified.
_SORTED = re.compile(r"\b(a?r?g?sort|msort|topk)\(")
# Operators whose choice among equal values is unspecified, and is not varied by `AlternateTieBreaks`.
_ANY = re.compile(
    r"\b(kthvalue|\w*median|mode|cummax|cummin|unique\w*|hist\w+|quantize\w*)\(|return_indices|with_indices"
)
# Operators that round to an integer: on computed values, an error may change the result by one.
_ROUNDED = re.compile(r"\b(round|floor|ceil|trunc)\(|\.(long|int|short|char|byte|to|type)\(")
# Whether a product of numbers of very different sizes overflows depends on the order of the factors. Attributes of
# `self` have usual sizes.
_PRODUCT = re.compile(
    r"[)\]]\.(?:cum)?prod\(|(?<![\w.])(?!(?:math|np|numpy|self(?:\.\w+)+)\.(?:cum)?prod\()[\w.]+\.(?:cum)?prod\("
)
_STATE_TOLERANCE = 1e-4  # of the norm of a state's entry
_NUDGED = ("nudged0", "nudged1")


@dataclass(frozen=True, slots=True)
class Conclusion:
    """Results of all trials of a candidate that passes."""

    trials: tuple[Trial, ...]
    deterministic: bool
    launches: list[list[Launch]]  # of each trial
    kernels: tuple[str, ...]  # names of all launched kernels
    written: float  # share of the first call's output bytes that only the kernels get right


class Reference:
    """The reference's outputs on the trials, and comparisons of a candidate's outputs with them.

    `tensors` are the inputs and weights as `draw` returns them. `undrawn` are the entries of the state that no trial
    draws, with the values of the constructor. A candidate's guests run in the same `sandbox`, with the same `settings`.
    """

    def __init__(
        self,
        task: Task,
        trials: Sequence[PlannedTrial],
        tensors: Tensors,
        sandbox: Sandbox,
        settings: VerifySettings,
        limit_s: float = 0.0,
        usual: Mapping[int, tuple[int, float]] | None = None,
    ) -> None:
        """Run the reference in a guest.

        Args:
            limit_s: the trials are calls of their own: each starts from the constructor's state, may need so much CPU
                time, and decides nothing if the reference refuses it; a kernel may sum in order, see `nudges`. 0: the
                trials are those of a verdict.
            usual: for each trial whose outputs may cancel out, an earlier one whose outputs have the usual scale, and
                the share of that scale at which they do.

        Raises: InputRejected, Rejected.
        """
        self._usual = usual or {}
        self.task, self.trials, self.tensors, self._apart = task, trials, tensors, bool(limit_s)
        self.sandbox, self.settings = sandbox, settings
        calls = task.calls  # a property that computes the calls
        workloads = [calls[trial.workload] for trial in trials]
        request = ReferenceRequest(
            module=task.reference_source,
            trials=trial_calls(task, trials, limit_s),
            nudges=tuple(nudges(task, [workload] if self._apart else ()) for workload in workloads),
            half=task.is_half,
            apart=self._apart,
            ties=tuple(index for index, trial in enumerate(trials) if self._is_tied(trial)),
            exact=tuple(exact_values(task, trial) for trial in trials),
        )
        report = sandbox.run(Job(REFERENCE, request, tensors, settings.limits))
        reply = reply_of(report, Reason.ORACLE_FAILED)
        try:
            if reply.refused and not self._apart:
                raise InputRejected(reply.refused)
            self._state, self._indirect = reply.state, frozenset(reply.indirect)
            keys = {name: f"state.{name}" for name in self._state}
            self.undrawn = {name: report.tensors[key] for name, key in keys.items() if key in report.tensors}
            runs = [
                {name: read_observation(call, report.tensors, f"{index}.{name}") for name, call in calls.items()}
                for index, calls in enumerate(reply.trials)
            ]
            self._runs: list[dict[str, Observation]] = runs
            self._bounds, self._state_bounds = dict[int, ErrorBounds](), dict[int, ErrorBounds]()
            for index, (workload, run) in enumerate(zip(workloads, runs, strict=True)):
                if run:
                    states = self._drawn_states(run)
                    self._bounds[index] = self._error_bounds(index, workload, run, self._bounds)
                    self._state_bounds[index] = self._error_bounds(index, workload, states, self._state_bounds)
        except (MalformedReply, KeyError, TypeError, ValueError) as error:
            raise Rejected(Reason.CRASHED, f"the reference's guest gave no proper reply: {error}") from error
        self._decided = [
            index
            for index, bounds in self._bounds.items()
            if bounds.is_decided and not self._is_open(index, runs[index]["eager"])
        ]

    def _is_open(self, index: int, eager: Observation) -> bool:
        """True if the outputs decide nothing: only unspecified integers, or products that depend on the order."""
        code, trial = self.task.reference_code, self.trials[index]
        if trial.distribution in KINDS_OF_VALUES and _PRODUCT.search(code):
            return True
        if trial.distribution in _NEAR_TIES and self.task.by_model:
            return _has_integers(eager) and _sorts(code)
        return self._any_integer(index) and _has_integers(eager) and all(map(_is_discrete, eager.values))

    def _any_integer(self, index: int) -> bool:
        """True if the integer outputs of a trial are unspecified, because values are equal, or nearly equal."""
        if self.trials[index].distribution not in _TIES:
            return False
        return index in self._indirect or _ANY.search(self.task.reference_code) is not None

    def _is_tied(self, trial: PlannedTrial) -> bool:
        """True if the outputs may depend on an unspecified choice among equal values."""
        code = self.task.reference_code
        if trial.distribution in _NEAR_TIES:
            return self.task.by_model and (_sorts(code) or _FIRST.search(code) is not None)
        if trial.distribution == "sparse" and _FIRST.search(code):
            return any(pattern.search(code) for pattern in (_SORTED, _ANY))
        return trial.distribution in _TIES and (_FIRST.search(code) is not None or _sorts(code))

    def with_candidate(self, code: str) -> Reference:
        """The same reference outputs, for another source of the candidate."""
        other = copy(self)
        other.task = replace(self.task, triton_code=code)
        return other

    def first_trials_of_calls(self) -> list[int]:
        """Index of the first trial of each distinct call."""
        calls = [trial.workload for trial in self.trials]
        return [index for index, call in enumerate(calls) if call not in calls[:index]]

    def keeps_inputs(self, index: int) -> bool:
        """True if the reference changes or returns its inputs in a trial."""
        eager = self._runs[index]["eager"]
        return bool(eager.mutated) or any(eager.shares)

    def writes(self) -> tuple[str, ...]:
        """The inputs and state that the reference changes, such as "input 0" and "state running_mean"."""
        calls = [run["eager"] for run in self._runs if run]
        changed = {f"input {number}" for call in calls for number in call.mutated}
        return tuple(sorted(changed | {f"state {name}" for call in calls for name in call.changed}))

    def check_finite(self) -> None:
        """Raises: Rejected: the first trial, or all others, are not finite."""
        finite = [index for index, bounds in self._bounds.items() if bounds.is_finite]
        if 0 not in finite or len(finite) < min(2, len(self.trials)):
            raise Rejected(Reason.ORACLE_FAILED, f"finite only in trials {finite} of {len(self.trials)}")

    def check_decided(self) -> None:
        """Raises: Rejected: a trial is undecided, because honest runs differ in which values are finite."""
        if len(self._decided) < len(self.trials):
            raise Rejected(Reason.ORACLE_FAILED, f"only trials {self._decided} of {len(self.trials)} are decided")

    def decides(self, index: int) -> bool:
        """True if the reference ran on a trial and honest runs agree on it."""
        return index in self._decided

    def _error_bounds(
        self, index: int, workload: Workload, run: dict[str, Observation], bounds: Mapping[int, ErrorBounds]
    ) -> ErrorBounds:
        """The tolerances of a trial. Args: bounds: those of the trials before it."""
        eager, oracle = run["eager"], run["oracle"]
        shapes = [tuple(value.shape) for value in eager.values]
        if shapes != [tuple(value.shape) for value in oracle.values]:
            raise Rejected(Reason.ORACLE_FAILED, "float64 and float32 give other shapes")
        nudged = [run[name] for name in _NUDGED]
        summed = terms(workload, self.task.state, shapes, in_order=self._apart)
        tied, free = run.get("tied"), self._any_integer(index)
        honest, rounded = (nudged, eager) if self.task.is_half else ([eager, *nudged], None)
        masked = self.trials[index].distribution in MASKS
        place, cancels = self._usual.get(index, (-1, 0.0))
        return ErrorBounds(oracle, honest, summed, rounded, tied, free, masked, bounds.get(place), cancels)

    def check_impostors(self) -> tuple[str, ...]:
        """Names of the trivial answers that were tried. Raises: Rejected: one of them passes."""
        eager = self._runs[0]["eager"]
        other_answers = {"other_inputs": self._runs[1]["eager"]} if len(self._runs) > 1 else {}
        if "other" in self._runs[0]:
            other_answers["other_parameters"] = self._runs[0]["other"]
        inputs = [self.tensors[f"input.0.{i}"] for i in range(len(self.task.workloads[0].tensors))]
        answers = impostor_answers(eager, inputs, other_answers)
        for name, values in answers.items():
            measure = self._bounds[0].measure(values)
            if measure.passes:
                evidence = f"{name}: error {measure.error:.3g}, allowed {measure.tolerance:.3g} ({measure.where})"
                raise Rejected(Reason.IMPOSTOR_PASSES, evidence)
        return tuple(sorted(answers))

    def conclude(self, reply: TrialsReply, tensors: Tensors) -> Conclusion:
        """Check the trials, the repetition and the ghost run of a candidate. Raises: Rejected."""
        if reply.trials and not (reply.failed or any(reply.launches)):
            raise Rejected(Reason.OUTPUT_NOT_FROM_KERNEL, "no call launched a kernel")
        trials, deterministic = self.compare(reply, tensors)
        self.check_later(tensors)
        check_logged(reply, len(self.trials))
        kept = self._ghost_keeps(reply.ghost, tensors)
        launches, kernels = check_kernels(self.task, reply, kept)
        return Conclusion(trials, deterministic, launches, kernels, self._written(kept))

    def compare(self, reply: TrialsReply, tensors: Tensors) -> tuple[tuple[Trial, ...], bool]:
        """The trials with their errors, and True if the repetition is bitwise equal. Raises: Rejected."""
        if reply.load_error:
            raise Rejected(Reason.DOES_NOT_LOAD, reply.load_error)
        self.check_state(reply.state)
        try:
            runs = [read_observation(call, tensors, str(index)) for index, call in enumerate(reply.trials)]
            repeat = read_observation(reply.repeat, tensors, "repeat")
        except (MalformedReply, ValueError) as error:
            raise Rejected(Reason.CRASHED, f"the candidate's guest gave no proper reply: {error}") from error
        if len(runs) != len(self.trials):
            raise Rejected(Reason.CRASHED, f"{len(runs)} results of {len(self.trials)} trials")
        results = [self._trial(index, runs[index], Reason.WRONG_VALUES) for index in self._decided]
        self._trial(0, repeat, Reason.NOT_DETERMINISTIC)
        return tuple(results), same_bytes(repeat, runs[0])

    def check_state(self, state: Mapping[str, StateEntry]) -> None:
        """Raises: Rejected: the constructors of the candidate and the reference leave different states."""
        if different := _state_difference(self._state, state):
            raise Rejected(Reason.STATE_DIFFERS, different)

    def _written(self, kept: Sequence[int]) -> float:
        """Share of the first call's output bytes that are wrong in the ghost run; the outputs `kept` are right."""
        run = self._runs[0]["eager"]
        sizes = [value.numel() * value.element_size() for value in run.values]
        own = [index for index in range(len(sizes)) if index >= len(run.shares) or not run.shares[index]]
        total = sum(sizes[index] for index in own)
        return sum(sizes[index] for index in own if index not in kept) / total if total else 1.0

    def _trial(self, index: int, observed: Observation, wrong: Reason) -> Trial:
        planned = self.trials[index]
        if difference := contract_difference(self._runs[index]["eager"], observed, planned.strided):
            raise Rejected(Reason.WRONG_CONTRACT, difference, planned)
        if error := self._state_error(index, observed):
            raise Rejected(wrong, error, planned)
        measure = self._bounds[index].measure(observed.values)
        if not measure.passes:
            error = f"error {measure.error:.3g}, allowed {measure.tolerance:.3g} ({measure.where})"
            error += self._hint(planned) if wrong is Reason.WRONG_VALUES else ""
            raise Rejected(wrong, error, planned, self._bounds[index].worst_element(observed))
        return Trial(
            workload=planned.workload,
            seed=planned.seed,
            distribution=planned.distribution,
            error=measure.error,
            honest_error=measure.honest_error,
            tolerance=measure.tolerance,
        )

    def _hint(self, trial: PlannedTrial) -> str:
        """The likely cause of wrong values, as the end of the evidence."""
        task = self.task
        found = hint(task.triton_code, trial.distribution, task.is_half) if task.by_model else ""
        return f"; {found}" if found else ""

    def is_right(self, index: int, observed: Observation) -> bool:
        """True if trial `index` would pass with these outputs, or decides nothing."""
        if not self.decides(index):
            return True
        if contract_difference(self._runs[index]["eager"], observed, self.trials[index].strided):
            return False
        return not self._state_error(index, observed) and self._bounds[index].measure(observed.values).passes

    def _state_error(self, index: int, observed: Observation) -> str:
        """The error of the state after the call; "" if the state is right."""
        state = self._drawn_state(observed)
        if not state:
            return ""
        measure = self._state_bounds[index].measure(list(state.values()))
        names = ", ".join(state)
        return "" if measure.passes else f"error {measure.error:.3g}, allowed {measure.tolerance:.3g} (state {names})"

    def _drawn_states(self, run: dict[str, Observation]) -> dict[str, Observation]:
        """The same calls, with the changed state in place of the outputs."""
        return {
            name: replace(call, outputs=tuple(self._drawn_state(call).values()), mutated={})
            for name, call in run.items()
        }

    def _drawn_state(self, observed: Observation) -> dict[str, torch.Tensor]:
        """Changed entries of the state that trials draw; the others depend on earlier calls."""
        return {name: value for name, value in observed.changed.items() if f"state.0.{name}" in self.tensors}

    def check_later(self, tensors: Tensors) -> None:
        """Check that later calls did not change the outputs of the first, except views of state. Raises: Rejected."""
        for index, owner in enumerate(self._runs[0]["eager"].shares):
            first, later = (tensors.get(f"{name}.output.{index}") for name in ("0", "later"))
            if first is None or later is None:
                raise Rejected(Reason.CRASHED, f"the candidate's guest gave no proper reply: no later output {index}")
            if not owner and not same_bits(later, first):
                raise Rejected(Reason.WRONG_CONTRACT, f"output {index} of the first call was changed by a later one")

    def _ghost_keeps(self, ghost: ObservedCall | None, tensors: Tensors) -> list[int]:
        """Numbers of the outputs that are right in the ghost run, except views of inputs or state."""
        eager = self._runs[0]["eager"]
        if ghost is None:
            return []
        try:
            observed = read_observation(ghost, tensors, "ghost")
        except (MalformedReply, ValueError) as error:
            raise Rejected(Reason.CRASHED, f"the candidate's guest gave no proper reply: {error}") from error
        if contract_difference(eager, observed):
            return []
        shared = [index for index, owner in enumerate(eager.shares) if owner]
        return [index for index in self._bounds[0].unchanged(observed.values) if index not in shared]


def _sorts(code: str) -> bool:
    return any(pattern.search(code) for pattern in (_SORTED, _ANY, _ROUNDED))


def _is_discrete(value: torch.Tensor) -> bool:
    return not value.is_floating_point() and not value.is_complex()


def _has_integers(observed: Observation) -> bool:
    return any(_is_discrete(value) and value.dtype != torch.bool for value in observed.values)


def _state_difference(reference: Mapping[str, StateEntry], candidate: Mapping[str, StateEntry]) -> str:
    """Names of the first entries that differ; "" if none does."""
    every = sorted(reference.keys() | candidate.keys())
    names = [name for name in every if not _same_entry(reference.get(name), candidate.get(name))]
    return f"{len(names)} entries differ: {', '.join(names[:5])}" if names else ""


def _same_entry(reference: StateEntry | None, candidate: StateEntry | None) -> bool:
    """True if two entries are equal within a tolerance: a constructor's solver, for example, varies by process."""
    if reference is None or candidate is None or reference == candidate:
        return reference == candidate
    old, new = ((entry.shape, entry.dtype, len(entry.sums)) for entry in (reference, candidate))
    if old != new or not reference.sums:
        return False
    bound = _STATE_TOLERANCE * reference.norm
    return all(abs(one - two) <= bound for one, two in zip(reference.sums, candidate.sums, strict=True))
