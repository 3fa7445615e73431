"""A model's source, judged: linted, and what the rules do not refuse is verified.

Distillation, reward and evaluation all come through here, so that they say the same of the same source.
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
    Reason.OUTPUT_NOT_FROM_KERNEL: "unused",
    Reason.FORBIDDEN_CODE: "fraud",
    Reason.UNVERIFIED_PATH: "untried",
}


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is known of one answer: a verdict, or the reason why there is none."""

    code: str  # "" if the answer has none
    findings: tuple[Finding, ...] = ()  # of the linter
    verdict: Verdict | None = None
    purity: Purity = Purity.PURE  # that it was held to
    reason: Reason | None = None
    evidence: str = ""
    counter_examples: tuple[CounterExample, ...] = ()
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
        return self.reason.value if self.reason else Reason.NO_CODE.value if not self.code else "errored"


def judge_code(code: str, asked: Task, sandbox: Sandbox, settings: VerifySettings) -> Judgement:
    """`asked` is the module with the kernel that it came with: operators that this leaves to PyTorch, an answer may
    leave to it too, which is noted."""
    if not code:
        return Judgement("")
    findings = lint(code, asked.extern_ops)
    if refused := refusal(findings):
        return Judgement(code, findings, reason=refused[0], evidence=refused[1])
    pure = replace(
        asked,
        triton_code=code,
        kernels=launched_kernels(code),
        purity=Purity.PURE,
        extern_ops=(),
        guards=(),
        by_model=True,
    )
    found, purity = verify_task(pure, sandbox, settings), Purity.PURE
    if isinstance(found, Dropped) and found.reason is Reason.OUTPUT_NOT_FROM_KERNEL and asked.purity is Purity.MIXED:
        purity = Purity.MIXED
        found = verify_task(replace(pure, purity=purity, extern_ops=asked.extern_ops), sandbox, settings)
    if isinstance(found, Dropped):
        return Judgement(code, findings, None, purity, found.reason, found.evidence, found.counter_examples)
    return Judgement(code, findings, found, purity)


def refusal(findings: Iterable[Finding]) -> tuple[Reason, str] | None:
    """Why an answer need not be run, and all that the linter found; None if it must be."""
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
