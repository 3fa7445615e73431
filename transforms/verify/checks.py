"""The checks of a verification as a table, in the order in which they run: the cheap and the telling ones first.

A check raises `Rejected` or adds to the `Verification` what later checks and the verdict need. The table in
`docs/reference/stages/verify.md` is made from this one by `make docs`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property, partial
from typing import Any

from kernelquarry.filters.language import check
from kernelquarry.filters.language.parsed_source import launched_kernels, parsed
from kernelquarry.filters.language.tables import CACHES
from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Engine, Tier, Trial, Verdict

from .compiling import compile_kernels
from .configurations import rotate_configurations
from .environment import environment
from .evidence import InputRejected, Rejected, check_all_launched
from .further_checks import FurtherRuns
from .interpreting import check_interpreted
from .larger_calls import check_larger_calls, run_large
from .plan import Planner
from .plan.claims import Narrowed
from .plan_checks import check_plan, narrow_claim
from .read_source import source_rejection
from .reference_run import Conclusion, Reference
from .running import CandidateRun, check_workload, run_candidate
from .task import PlannedTrial, Task, VerifySettings, draw, without
from .validate_task import validate_task


@dataclass(frozen=True, slots=True)
class Proven:
    """A verdict, and the text that it holds for: a model's text is narrowed to what was tried."""

    verdict: Verdict
    code: str
    narrowed: tuple[str, ...] = ()  # a note on each difference
    planner: Planner | None = None  # of a model's candidate, with the plans of the verified calls


@dataclass
class Verification:
    """One verification under way: its task, and what its checks found."""

    task: Task
    planned: Sequence[PlannedTrial]
    sandbox: Sandbox
    settings: VerifySettings
    reference: Reference = field(init=False)
    run: CandidateRun = field(init=False)
    conclusion: Conclusion = field(init=False)
    impostors: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    trials: tuple[Trial, ...] = ()  # the worst of each trial, over all configurations
    planner: Planner | None = None  # of a model's candidate
    narrowed: Narrowed | None = None  # the text that is published, if it was narrowed

    @property
    def engine(self) -> Engine:
        """The engine that ran the kernels."""
        return self.run.engine

    @cached_property
    def further(self) -> FurtherRuns:
        """The runs beyond the trials, made when the first check needs them."""
        return FurtherRuns.of(self.reference)

    def proven(self) -> Proven:
        """The verdict, with the text that it holds for."""
        narrowed = self.narrowed or Narrowed(self.task.triton_code)
        return Proven(self.verdict(), narrowed.code, narrowed.notes, self.planner)

    def verdict(self) -> Verdict:
        ran_in = Tier.INTERPRETED if self.engine is Engine.INTERPRETER else Tier.EXECUTED
        return Verdict(
            tiers=(Tier.COMPILED, ran_in) if self.targets else (ran_in,),
            engine=self.engine,
            targets=self.targets,
            trials=self.trials,
            launches=len(self.conclusion.launches[0]),
            launched_kernels=self.conclusion.kernels,
            deterministic=self.conclusion.deterministic,
            written=self.conclusion.written,
            impostors=self.impostors,
            environment=environment(self.sandbox),
        )


def _read_source(verification: Verification) -> None:
    task = verification.task
    if not task.by_model:  # our own code, with arguments from the mined source
        if outside := check("", task.init_args):
            raise Rejected(Reason.OUTSIDE_LANGUAGE, str(outside))
        return
    if found := source_rejection(task.triton_code, task.init_args, task.python_code):
        raise Rejected(*found)
    if task.training:  # no plan tells what is cached
        source = parsed(task.triton_code)
        if CACHES.names & {source.path(node) for node in source.nodes}:
            raise Rejected(Reason.OUTSIDE_LANGUAGE, "a cache in a candidate with a backward: leave it out")


def _check_task(verification: Verification) -> None:
    validate_task(verification.task, verification.planned)


def _run_reference(verification: Verification) -> None:
    """Run the reference on the trials, with replacements for those on which it raises."""
    task, trials = verification.task, verification.planned
    while True:
        try:
            verification.reference = Reference(
                task, trials, draw(task, trials), verification.sandbox, verification.settings
            )
            break
        except InputRejected as rejected:
            trials = without(task, trials, rejected.trials)
    verification.reference.check_finite()


def _try_impostors(verification: Verification) -> None:
    verification.impostors = verification.reference.check_impostors()


def _run_trials(verification: Verification) -> None:
    """Run the candidate on the trials, without those on which it raises and may."""
    while True:
        try:
            verification.run = run = run_candidate(verification.reference)
            break
        except InputRejected as rejected:
            refused = rejected.trials
        verification.planned = [
            trial for index, trial in enumerate(verification.reference.trials) if index not in refused
        ]
        _run_reference(verification)
        _try_impostors(verification)
    verification.conclusion = verification.reference.conclude(run.reply, run.tensors)
    verification.trials = verification.conclusion.trials


def _compile(verification: Verification) -> None:
    verification.targets = compile_kernels(verification.reference, verification.engine)


def _interpret(verification: Verification) -> None:
    check_interpreted(verification.reference)


def _run_configurations(verification: Verification) -> None:
    """Run the trials with every configuration of a lowered candidate, and keep the worst result of each trial."""
    for number, code in enumerate(rotate_configurations(verification.task.triton_code), 2):
        other = copy(verification)
        other.reference = verification.reference.with_candidate(code)
        try:
            for check in CHECKS:
                if check.run in (_run_trials, _compile, _interpret) and check.applies.to(other):
                    check.run(other)
        except Rejected as rejected:
            found = f"with configuration {number}: {rejected.found}"
            raise Rejected(rejected.reason, found, rejected.trial, rejected.element) from rejected
        pairs = zip(verification.trials, other.trials, strict=True)
        verification.trials = tuple(max(pair, key=lambda trial: trial.error) for pair in pairs)


def _check_environments(verification: Verification) -> None:
    verification.further.check_environments()


def _check_further_calls(verification: Verification) -> None:
    verification.further.check_calls()


def _check_tuned(verification: Verification) -> None:
    verification.further.check_configurations()


def _check_plan(verification: Verification) -> None:
    if not verification.task.training:  # no plan has a backward
        verification.planner = check_plan(verification.reference, verification.run.reply, verification.further)


def _check_larger_calls(verification: Verification) -> None:
    if verification.planner is not None:
        ran = verification.further.launch_logs
        run = partial(check_workload, verification.task, verification.sandbox, verification.settings)
        check_larger_calls(verification.reference, verification.planner, ran, run)


def _run_large(verification: Verification) -> None:
    run_large(verification.reference)


def _narrow(verification: Verification) -> None:
    if verification.planner is not None:
        verification.narrowed, verification.planner = narrow_claim(
            verification.planner, verification.reference, verification.run.reply, verification.further
        )
        check_all_launched(launched_kernels(verification.narrowed.code), verification.conclusion.kernels)


class Applies(Enum):
    """The candidates that a check applies to."""

    ALL = "all"
    LOWERED = "lowered"
    MODEL = "a model's"
    GPU = "all, on a GPU"
    TRACED_MODEL = "a model's, where a GPU ran its trace"

    def to(self, verification: Verification) -> bool:
        match self:
            case Applies.LOWERED:
                return not verification.task.by_model
            case Applies.MODEL:
                return verification.task.by_model
            case Applies.GPU:
                return verification.engine is not Engine.INTERPRETER
            case Applies.TRACED_MODEL:
                return verification.task.by_model and verification.engine is Engine.TRACE
        return True


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    catches: str
    applies: Applies
    run: Callable[[Verification], Any]


CHECKS = (
    Check("source", "code outside of the language; kernels without a launch", Applies.ALL, _read_source),
    Check("task", "rows that are malformed, or too large to draw", Applies.ALL, _check_task),
    Check("reference", "modules that raise, or give no finite values", Applies.ALL, _run_reference),
    Check("impostors", "tasks that zeros, an input, a mean or another answer pass", Applies.ALL, _try_impostors),
    Check("trials", "wrong values, contract or state; outputs not from kernels", Applies.ALL, _run_trials),
    Check("compiling", "kernels that do not compile", Applies.ALL, _compile),
    Check("reverse order", "races, and wrong addresses, of kernels that a GPU ran", Applies.GPU, _interpret),
    Check("configurations", "wrong configurations of a tuner", Applies.LOWERED, _run_configurations),
    Check("environments", "stores that outlive a call; other memory or GPUs", Applies.MODEL, _check_environments),
    Check("further calls", "sizes and values that no trial has; other weights", Applies.MODEL, _check_further_calls),
    Check("tuner", "wrong configurations of a tuner, on a large call", Applies.MODEL, _check_tuned),
    Check("plan", "host code that does not do what it says", Applies.MODEL, _check_plan),
    Check("larger calls", "other paths, flags or numbers for large inputs", Applies.MODEL, _check_larger_calls),
    Check("large grid", "kernels that fault or hang on a large grid", Applies.TRACED_MODEL, _run_large),
    Check("claim", "kernels that no call launched; narrows the text to what was tried", Applies.MODEL, _narrow),
)
