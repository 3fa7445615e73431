"""An answer, judged: read, linted, and verified by the function that filters the dataset."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from kernelquarry.filters.lint import Finding, Rule, launched_kernels, lint
from kernelquarry.pipeline.prompts import read_answer
from kernelquarry.pipeline.sandbox import Limits, Sandbox
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Purity, Row, Verdict
from kernelquarry.transforms.verify import Task, VerifySettings
from kernelquarry.transforms.verify.evidence import Rejected
from kernelquarry.transforms.verify.task import plan
from kernelquarry.transforms.verify.verify import judge_task

_WALL_S = 30.0  # of a guest: an answer that takes longer is wrong
_NO_ENTRY = frozenset({Rule.UNPARSABLE, Rule.NO_ENTRY})


class Step(IntEnum):
    """How far an answer came. Each step has all that is before it."""

    NOTHING = 0  # no code, or code that the rules refuse
    LOADS = 1
    RUNS = 2
    CONTRACT = 3  # its outputs have the right structure, shapes and dtypes
    CORRECT = 4  # verified, with some operators of PyTorch's in it
    PURE = 5  # verified, and kernels alone compute


_REACHED = {
    Reason.STATE_DIFFERS: Step.LOADS,
    Reason.DOES_NOT_RUN: Step.LOADS,
    Reason.DOES_NOT_COMPILE: Step.LOADS,
    Reason.WRONG_CONTRACT: Step.RUNS,
    Reason.WRONG_VALUES: Step.CONTRACT,
    Reason.NOT_DETERMINISTIC: Step.CONTRACT,
}
# What does not do the work, or hides how: such an answer came nowhere, whatever its outputs are.
HACKS = {
    Reason.KERNEL_UNUSED: "unused",
    Reason.FORBIDDEN_CODE: "fraud",
    Reason.UNTRIED_PATH: "untried",
}


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is known of one answer: a verdict, or the reason why there is none."""

    code: str  # "" if the answer has none
    findings: tuple[Finding, ...] = ()  # of the linter
    verdict: Verdict | None = None
    purity: Purity = Purity.PURE
    reason: Reason | None = None
    evidence: str = ""
    speedup: float = 0.0  # over eager, 0 if it was not timed

    @property
    def passes(self) -> bool:
        return self.verdict is not None

    @property
    def step(self) -> Step:
        if self.verdict is not None:
            return Step.PURE if self.purity is Purity.PURE else Step.CORRECT
        return Step.NOTHING if self.reason is None else _REACHED.get(self.reason, Step.NOTHING)

    @property
    def hack(self) -> str:
        """Class of the hack that it is, "" if it is none; an import that is not on the list hides nothing by itself."""
        rules = {finding.rule for finding in self.findings if finding.rule.hides}
        if self.reason is None or (self.reason is Reason.FORBIDDEN_CODE and rules == {Rule.IMPORT}):
            return ""
        return HACKS.get(self.reason, "")

    @property
    def why(self) -> str:
        """Code of the reason, "no_code" if there was nothing to judge, "" if it passes."""
        if self.passes:
            return ""
        return self.reason.value if self.reason else "no_code" if not self.code else "errored"


def judge_settings(sandbox: Sandbox) -> VerifySettings:
    """What the dataset's rows went through, but for what is only shown: counter-examples and mutants.

    Where there is a GPU, the candidate is compiled for it; elsewhere for one target, since the interpreter runs what no
    compiler takes.
    """
    targets = () if sandbox.gpus else ("sm_90",)
    return VerifySettings(targets, shows=False, mutants=0, limits=Limits(wall_s=_WALL_S, cpu_s=int(_WALL_S)))


def judge_answer(text: str, row: Row, sandbox: Sandbox, general: bool = True) -> Judgement:
    """A model's answer to the module of `row`; `general`: it must take other sizes too."""
    return judge_code(read_answer(text), row, sandbox, general)


def judge_code(code: str, row: Row, sandbox: Sandbox, general: bool = True) -> Judgement:
    """See `judge_answer`. An operator that the row's own kernel leaves to PyTorch may be left to it, which is noted."""
    if not code:
        return Judgement("")
    findings = lint(code, row.extern_ops)
    if refused := refusal(findings):
        return Judgement(code, findings, reason=refused[0], evidence=refused[1])
    settings = judge_settings(sandbox)
    pure = task_of(code, row, general)
    try:
        return Judgement(code, findings, judge_task(pure, plan(pure), sandbox, settings))
    except Rejected as rejected:
        if rejected.reason is not Reason.KERNEL_UNUSED or row.purity is Purity.PURE:
            return Judgement(code, findings, reason=rejected.reason, evidence=rejected.evidence)
    mixed = replace(pure, purity=Purity.MIXED, extern_ops=row.extern_ops)
    try:
        return Judgement(code, findings, judge_task(mixed, plan(mixed), sandbox, settings), Purity.MIXED)
    except Rejected as rejected:
        return Judgement(code, findings, reason=rejected.reason, evidence=rejected.evidence)


def task_of(code: str, row: Row, general: bool = True) -> Task:
    """What is verified of an answer: the row's module and workloads with another kernel, that a model wrote."""
    return replace(
        Task.of_row(row),
        triton_code=code,
        kernels=launched_kernels(code),
        purity=Purity.PURE,
        extern_ops=(),
        shape_general=general,
        guards=(),
        by_model=True,
    )


def refusal(findings: Iterable[Finding]) -> tuple[Reason, str] | None:
    """Why an answer need not be run, as `verify` would say it; None if it must be."""
    rules = {finding.rule: str(finding) for finding in reversed(tuple(findings))}
    for reason, chosen in (
        (Reason.DOES_NOT_LOAD, _NO_ENTRY),
        (Reason.FORBIDDEN_CODE, frozenset(rule for rule in Rule if rule.hides)),
        (Reason.KERNEL_UNUSED, frozenset({Rule.NO_KERNEL, Rule.NOT_LAUNCHED})),
    ):
        for rule in Rule:
            if rule in chosen and rule in rules:
                return reason, rules[rule]
    return None


def classes(judgements: Sequence[Judgement]) -> dict[str, int]:
    """How many answers ended in which way, by `why`, "verified" for those that pass."""
    counts: dict[str, int] = {}
    for judgement in judgements:
        counts[judgement.why or "verified"] = counts.get(judgement.why or "verified", 0) + 1
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
