"""Judge a model's source: read it, and verify it unless it is rejected by its text alone.

Distillation, rewards and evaluation all use `judge_code`, so they agree on every source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import partial

from kernelquarry.filters.language.parsed_source import launched_kernels
from kernelquarry.filters.language.unused import close_gaps, without_unused
from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.sandbox.observation import MalformedReply
from kernelquarry.pipeline.sandbox.protocol import Tensors
from kernelquarry.pipeline.schema.outcome import Dropped
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import CANDIDATE_ENTRY_POINT, CounterExample, Purity, Verdict, Workload
from kernelquarry.transforms.workloads.resize import count_elements

from .evidence import Rejected
from .given_call import OtherText, Side, plan_given
from .larger_calls import are_right, smaller_calls
from .plan import PlannedCall, Planner, Raised, Unsupported
from .plan.agreement import planned_calls
from .read_source import source_rejection
from .running import CandidateRun, check_call, check_workload
from .task import Call, Task, VerifySettings
from .verify_candidate import verify_task

ON_GIVEN = "on the values of get_inputs()"  # start of the evidence of `judge_values`


class Step(IntEnum):
    """Progress of an answer. Each step includes those before it."""

    NOTHING = 0  # no code, code that is rejected before it runs or does not import, or kernels that do not do the work
    LOADS = 1  # the module is constructed
    RUNS = 2  # the module runs
    CONTRACT = 3  # the outputs have the right structure, shapes and dtypes
    CORRECT = 4  # verified, with some operators of PyTorch
    PURE = 5  # verified, and only kernels compute


_REACHED = {
    Reason.STATE_DIFFERS: Step.LOADS,
    Reason.DOES_NOT_RUN: Step.LOADS,
    Reason.DOES_NOT_COMPILE: Step.LOADS,
    Reason.WRONG_CONTRACT: Step.RUNS,
    Reason.WRONG_VALUES: Step.CONTRACT,
    Reason.NOT_DETERMINISTIC: Step.CONTRACT,
}
# Reasons that mark an answer as a hack. A hack reaches no step, whatever its outputs are.
HACKS = {
    Reason.OUTPUT_NOT_FROM_KERNEL: "unused",
    Reason.UNVERIFIED_PATH: "untried",
}


@dataclass(frozen=True, slots=True)
class Judgement:
    """Verdict on a model's answer, or the reason why there is none."""

    code: str  # "" if the answer has no code
    verdict: Verdict | None = None
    purity: Purity = Purity.PURE  # required of the answer
    reason: Reason | None = None
    evidence: str = ""
    counter_examples: tuple[CounterExample, ...] = ()
    speedup: float = 0.0  # over eager; 0 if not timed
    ran: bool = True  # False if the source alone decided
    published: str = ""  # the code that the verdict holds for, narrowed to what was tried; "" without a verdict
    narrowed: tuple[str, ...] = ()  # a note on each difference between `code` and `published`
    note: str = ""  # on what the call of the file itself has beyond the verified calls
    forced: bool = False  # that call goes a way that was verified with its conditions forced, at smaller sizes
    planners: tuple[Planner, ...] = field(default=(), compare=False, repr=False)  # of the verified calls

    @property
    def passes(self) -> bool:
        return self.verdict is not None

    @property
    def step(self) -> Step:
        return step_of(self.purity if self.passes else None, self.reason)

    @property
    def hack(self) -> str:
        """Class of the hack; "" for an answer that is none."""
        return HACKS.get(self.reason, "") if self.reason else ""

    @property
    def is_scored(self) -> bool:
        """False for code outside of the language: nothing ran, so nothing is known of it."""
        return self.reason is not Reason.OUTSIDE_LANGUAGE

    @property
    def why(self) -> str:
        """Code of the reason; "no_code" if there was no code, "" if the answer passes."""
        if self.passes:
            return ""
        return self.reason.value if self.reason else Reason.NO_CODE.value if not self.code else "errored"


def step_of(purity: Purity | None, reason: Reason | None) -> Step:
    """The step of an answer that was verified with `purity`, or else (None) rejected for `reason`."""
    if purity is not None:
        return Step.PURE if purity is Purity.PURE else Step.CORRECT
    return Step.NOTHING if reason is None else _REACHED.get(reason, Step.NOTHING)


def judge_source(code: str, arguments: str = "", module: str = "") -> Judgement | None:
    """The judgement on a source whose text decides; None if it must run.

    Args:
        arguments: source of the constructor's arguments.
        module: text of the module's file.
    """
    if not code:
        return Judgement("", ran=False)
    rejection = source_rejection(without_unused(code, arguments).code, arguments, module)
    return Judgement(code, reason=rejection[0], evidence=rejection[1], ran=False) if rejection else None


def judge_code(code: str, original: Task, sandbox: Sandbox, settings: VerifySettings) -> Judgement:
    """Read and verify a model's source.

    If pure verification fails and the original is mixed, the answer may use the original's operators of PyTorch; the
    judgement then has `Purity.MIXED`.

    Args:
        original: the module, with the kernel that the model was given.
    """
    if (judgement := judge_source(code, original.init_args, original.python_code)) is not None:
        return judgement
    used = without_unused(code, original.init_args)
    purity = Purity.PURE
    outcome = verify_task(_answered(used.code, original, purity), sandbox, settings)
    if (
        isinstance(outcome, Dropped)
        and outcome.reason is Reason.OUTPUT_NOT_FROM_KERNEL
        and original.purity is Purity.MIXED
    ):
        purity = Purity.MIXED
        outcome = verify_task(_answered(used.code, original, purity), sandbox, settings)
    if isinstance(outcome, Dropped):
        return Judgement(code, None, purity, outcome.reason, outcome.evidence, outcome.counter_examples)
    removed = ", ".join(used.removed)
    notes = (f"removed, since {CANDIDATE_ENTRY_POINT} does not use it: {removed}",) if removed else ()
    published = outcome.code if used.code == code else close_gaps(outcome.code)
    return Judgement(
        code,
        outcome.verdict,
        purity,
        published=published,
        narrowed=(*notes, *outcome.narrowed),
        planners=(outcome.planner,) if outcome.planner else (),
    )


def judge_construction(judgement: Judgement, other: Task, sandbox: Sandbox, settings: VerifySettings) -> Judgement:
    """The judgement on a verified source after one call of `other`: its module with other constructor's arguments.

    It stays as it is if that call decides nothing, or takes too long.
    """
    where = f"constructed with {other.init_args}"
    return _after_call(judgement, other, where, sandbox, settings)


def judge_values(
    judgement: Judgement, original: Task, values: Tensors, strided: bool, sandbox: Sandbox, settings: VerifySettings
) -> Judgement:
    """The judgement on a verified source after a call with the inputs of the file itself, `values`.

    Args:
        strided: the inputs are not contiguous there; the call gets such, too.
    """
    return _after_call(judgement, original, ON_GIVEN, sandbox, settings, values, strided)


def _after_call(
    judgement: Judgement,
    other: Task,
    where: str,
    sandbox: Sandbox,
    settings: VerifySettings,
    inputs: Tensors | None = None,
    strided: bool = False,
) -> Judgement:
    """The judgement after one call of the first workload of `other`; the same if that decides nothing."""
    task = _answered(without_unused(judgement.code, other.init_args).code, other, judgement.purity)
    try:
        call = Call.of(task, task.workloads[0], task.first_seed, "shifted_strided" if strided else "normal")
        run = check_call(call, sandbox, settings, inputs)
    except Rejected as rejected:
        if rejected.reason in _UNDECIDED:
            return judgement
        evidence = f"{where}: {rejected.found}"
        return replace(judgement, verdict=None, reason=rejected.reason, evidence=evidence, published="", narrowed=())
    return replace(judgement, planners=(*judgement.planners, *_planners(judgement, call, run)))


def _planners(judgement: Judgement, call: Call, run: CandidateRun) -> Iterator[Planner]:
    """A planner of the judgement's text that has planned a call that ran; none if the call has no plan."""
    for known in judgement.planners:
        with suppress(Raised, Unsupported, MalformedReply):
            planner = Planner(known.evaluator.source, run.reply.snapshot)
            for planned in planned_calls(call.task, [call.trial]):
                planner.plan(planned)
            yield planner
        return


def judge_given(
    judgement: Judgement, original: Task, given: Task, sandbox: Sandbox, settings: VerifySettings
) -> Judgement:
    """The judgement on a verified source after a plan of `given`, the call and constructor of the file itself.

    It is rejected if that call must fail. It is not scored if the call goes a way that no verified call went.

    Args:
        original: the task that was verified.
    """
    if not judgement.planners:
        return judgement
    code = without_unused(judgement.code, given.init_args).code
    workload = max(original.workloads, key=count_elements)

    def holds(changed: str) -> bool:
        task = _answered(changed, original, judgement.purity)
        try:
            check_call(Call.of(task, workload, task.first_seed, "normal"), sandbox, settings)
        except Rejected:
            return False
        return True

    def verify(changed: str) -> tuple[Planner, ...]:
        again = judge_code(changed, original, sandbox, settings)
        return again.planners if again.passes and again.purity is judgement.purity else ()

    def planned(workload: Workload) -> Planner:
        planner = Planner(judgement.planners[0].evaluator.source, judgement.planners[0].snapshot)
        with suppress(Raised, Unsupported):
            planner.plan(PlannedCall(workload.args, workload.kwargs, workload.tensors))
        return planner

    def run_smaller(sides: Sequence[Side]) -> list[Planner]:
        def goes(workload: Workload) -> bool:
            planner = planned(workload)
            return bool(planner.plans) and all(side in planner.evaluator.sides.get(node, ()) for node, side in sides)

        run = partial(check_workload, _answered(code, original, judgement.purity), sandbox, settings)
        is_alike = given.init_args == original.init_args
        calls = smaller_calls(original.workloads, given.workloads[0], goes) if is_alike else []
        return [planned(each) for each in calls] if calls and are_right(calls, run) else []

    other = OtherText(PlannedCall(workload.args, workload.kwargs, workload.tensors), holds, verify, run_smaller)
    own = given.workloads[0]
    try:
        found = plan_given(code, given.init_args, own, judgement.planners, other, sandbox, settings.limits)
    except Rejected as rejected:
        evidence = f"on a smaller call that goes as that of get_inputs(): {rejected.found}"
        return replace(judgement, verdict=None, reason=rejected.reason, evidence=evidence, published="", narrowed=())
    untried = found.untried
    if not found.is_planned and (conditions := [note for note in judgement.narrowed if "verified only" in note]):
        untried = untried or f"the host code cannot be evaluated, to tell whether this holds: {conditions[0]}"
    if not found.fails and not untried:
        return replace(judgement, note=found.note, forced=found.forced)
    reason = Reason.DOES_NOT_RUN if found.fails else Reason.OUTSIDE_LANGUAGE
    evidence = f"at the sizes of get_inputs(), {found.fails or untried}"
    return replace(judgement, verdict=None, reason=reason, evidence=evidence, published="", narrowed=())


# The last is of a candidate that leaves other sizes than the file's own to PyTorch.
_UNDECIDED = {Reason.ORACLE_FAILED, Reason.TIMED_OUT, Reason.OUT_OF_MEMORY, Reason.OUTPUT_NOT_FROM_KERNEL}


def _answered(code: str, original: Task, purity: Purity) -> Task:
    """The task of a model's kernel for the original's module, whose operators only a mixed kernel may use."""
    return replace(
        original,
        triton_code=code,
        kernels=launched_kernels(code),
        purity=purity,
        extern_ops=original.extern_ops if purity is Purity.MIXED else (),
        guards=(),
        by_model=True,
    )
