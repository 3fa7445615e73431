"""An answer becomes a candidate, and the candidate verified or lost."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelquarry.filters.lint import Finding, Rule, launched_kernels, lint
from kernelquarry.pipeline.prompts import parse_answer
from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.schema.lessons import Attempt
from kernelquarry.pipeline.schema.loss import Loss
from kernelquarry.pipeline.schema.outcome import Dropped, Kept
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Candidate, Purity, Verified
from kernelquarry.transforms.deduplicate.form import Form, form_of, similarity
from kernelquarry.transforms.verify import verify

from .cache import Reply
from .conversation import Conversation
from .teachers import Teaching

STAGE = "distill"
_EVIDENCE = 500  # characters
_NO_CODE = frozenset((Rule.NO_ENTRY, Rule.NO_KERNEL, Rule.UNPARSABLE))


@dataclass(slots=True)
class Judge:
    """Of all answers for one module. It remembers them, so that none is verified twice."""

    seed: Verified
    teaching: Teaching
    sandbox: Sandbox
    _form: Form = field(init=False)
    _seen: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self._form = form_of(self.seed.candidate.triton_code)
        self._seen = {self._form.exact}

    def judge(self, conversation: Conversation, reply: Reply) -> Attempt:
        """`conversation` ends with `reply`."""
        read = parse_answer(reply.content)
        if reply.finish == "refused" or not reply.content.strip():
            return self._lost(conversation, reply, Reason.NO_ANSWER, reply.content or "empty")
        if not read.code:
            if read.truncated or reply.finish == "length":
                return self._lost(conversation, reply, Reason.NO_ANSWER, "cut off")
            return self._lost(conversation, reply, Reason.NO_CODE, "no code")
        form = _form_of(read.code)
        code = form.exact if form else read.code
        if code in self._seen:
            return self._lost(conversation, reply, Reason.ANSWERED_BEFORE, "as the kernel it was shown, or an answer")
        self._seen.add(code)
        allowed: tuple[str, ...] = ()
        findings = lint(read.code)
        if findings and self.seed.candidate.extern_ops:  # the compiler needs those operators too
            allowed = self.seed.candidate.extern_ops
            findings = lint(read.code, allowed)
        if findings or form is None:
            return self._lost(conversation, reply, *_objection(findings), read.code)
        candidate = self._candidate(conversation, reply, read.code, allowed, similarity(form, self._form))
        match verify(candidate, self.sandbox):
            case Kept(verified):
                return Attempt((verified,), ())
            case Dropped(id, reason, evidence, examples):
                lost = Dropped(id, reason, evidence, examples, (candidate,))
                return Attempt((), (Loss.of(STAGE, lost),))
            case errored:
                raise RuntimeError(f"verify gave {errored}")

    def nothing(self, conversation: Conversation, reply: Reply) -> Candidate:
        """In place of a candidate, for an answer that has no code."""
        return self._candidate(conversation, reply, "", (), 0.0)

    def _lost(self, conversation: Conversation, reply: Reply, reason: Reason, evidence: str, code: str = "") -> Attempt:
        candidate = self._candidate(conversation, reply, code, (), 0.0)
        lost = Dropped(candidate.id, reason, evidence[:_EVIDENCE], (), (candidate,))
        return Attempt((), (Loss.of(STAGE, lost),))

    def _candidate(
        self, conversation: Conversation, reply: Reply, code: str, extern_ops: tuple[str, ...], similarity: float
    ) -> Candidate:
        """What the answer claims to be: for all sizes, as it was asked to, whatever the compiler made of the module."""
        return Candidate(
            probed=self.seed.candidate.probed,
            triton_code=code,
            kernels=launched_kernels(code) if code else (),
            purity=Purity.MIXED if extern_ops else Purity.PURE,
            extern_ops=extern_ops,
            shape_general=True,
            generator=conversation.generator(),
            inductor_code="",
            distillation=(conversation.distillation(self.teaching, reply.model, similarity),),
        )


def _form_of(code: str) -> Form | None:
    """None if it does not parse."""
    try:
        return form_of(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _objection(findings: tuple[Finding, ...]) -> tuple[Reason, str]:
    """The reason that fits what the linter found first, and all that it found."""
    rules = {finding.rule for finding in findings}
    if rules & _NO_CODE:
        reason = Reason.NO_CODE
    else:
        hides = any(rule.hides for rule in rules) or Rule.GUARDED in rules
        reason = Reason.FORBIDDEN_CODE if hides else Reason.KERNEL_UNUSED
    return reason, "\n".join(f"{finding} ({finding.rule.why})" for finding in findings)
