"""Judge a model's source: lint it, and verify it unless the linter rejects it.

Distillation, rewards and evaluation all use `judge_code`, so they agree on every source.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import IntEnum

from kernelquarry.filters.lint import Finding, Rule, launched_kernels, lint
from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.schema.outcome import Dropped
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import CounterExample, Purity, Verdict

from .task import Task, VerifySettings
from .verify_candidate import verify_task

_EVIDENCE = 500  # characters
_NO_ENTRY = frozenset((Rule.UNPARSABLE, Rule.NO_ENTRY))


class Step(IntEnum):
    """Progress of an answer. Each step includes those before it."""

    NOTHING = 0  # no code, code that does not import or that the linter rejects, or kernels that do not do the work
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
    Reason.FORBIDDEN_CODE: "fraud",
    Reason.UNVERIFIED_PATH: "untried",
}


@dataclass(frozen=True, slots=True)
class Judgement:
    """Verdict on a model's answer, or the reason why there is none."""

    code: str  # "" if the answer has no code
    findings: tuple[Finding, ...] = ()
    verdict: Verdict | None = None
    purity: Purity = Purity.PURE  # required of the answer
    reason: Reason | None = None
    evidence: str = ""
    counter_examples: tuple[CounterExample, ...] = ()
    speedup: float = 0.0  # over eager; 0 if not timed

    @property
    def passes(self) -> bool:
        return self.verdict is not None

    @property
    def step(self) -> Step:
        return step_of(self.purity if self.passes else None, self.reason)

    @property
    def hack(self) -> str:
        """Class of the hack; "" for an answer that is no hack, such as one with only a forbidden import."""
        rules = {finding.rule for finding in self.findings if finding.rule.hides}
        if self.reason is None or (self.reason is Reason.FORBIDDEN_CODE and rules == {Rule.IMPORT}):
            return ""
        return HACKS.get(self.reason, "")

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


def judge_code(code: str, original: Task, sandbox: Sandbox, settings: VerifySettings) -> Judgement:
    """Lint and verify a model's source.

    If pure verification fails and the original is mixed, the answer may use the original's operators of PyTorch; the
    judgement then has `Purity.MIXED`.

    Args:
        original: the module, with the kernel that the model was given.
    """
    if not code:
        return Judgement("")
    findings = lint(code, original.extern_ops)
    if rejection := lint_rejection(findings):
        return Judgement(code, findings, reason=rejection[0], evidence=rejection[1])
    pure = replace(
        original,
        triton_code=code,
        kernels=launched_kernels(code),
        purity=Purity.PURE,
        extern_ops=(),
        guards=(),
        by_model=True,
    )
    outcome, purity = verify_task(pure, sandbox, settings), Purity.PURE
    if (
        isinstance(outcome, Dropped)
        and outcome.reason is Reason.OUTPUT_NOT_FROM_KERNEL
        and original.purity is Purity.MIXED
    ):
        purity = Purity.MIXED
        outcome = verify_task(replace(pure, purity=purity, extern_ops=original.extern_ops), sandbox, settings)
    if isinstance(outcome, Dropped):
        return Judgement(code, findings, None, purity, outcome.reason, outcome.evidence, outcome.counter_examples)
    return Judgement(code, findings, outcome, purity)


def lint_rejection(findings: Iterable[Finding]) -> tuple[Reason, str] | None:
    """Reason to reject an answer without running it, with all findings as evidence; None without findings."""
    findings = tuple(findings)
    if not findings:
        return None
    rules = {finding.rule for finding in findings}
    if rules & _NO_ENTRY:
        reason = Reason.NO_CODE
    else:
        hides = any(rule.hides for rule in rules) or Rule.GUARDED in rules
        reason = Reason.FORBIDDEN_CODE if hides else Reason.OUTPUT_NOT_FROM_KERNEL
    return reason, "\n".join(f"{finding} ({finding.rule.why})" for finding in findings)[:_EVIDENCE]
