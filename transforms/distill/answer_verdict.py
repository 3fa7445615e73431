"""An answer becomes a candidate, and the candidate verified or lost."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from kernelquarry.filters.lint import launched_kernels
from kernelquarry.pipeline.prompts import parse_answer
from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.schema.distill_result import Attempt
from kernelquarry.pipeline.schema.outcome import Dropped, DropRecord
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Candidate, Purity, Verified
from kernelquarry.transforms.similarity.form import Form, form_of, similarity
from kernelquarry.transforms.verify import Task, VerifySettings
from kernelquarry.transforms.verify.answer import judge_code

from .cache import Reply
from .conversation import Conversation
from .teachers import DistillConfig

STAGE = "distill"
_EVIDENCE = 500  # characters of a refusal


@dataclass(slots=True)
class Judge:
    """Of all answers for one module. It remembers them, so that none is verified twice."""

    seed: Candidate  # the module's kernel, of no source if it has none
    teaching: DistillConfig
    sandbox: Sandbox
    _form: Form | None = field(init=False)
    _seen: set[str] = field(init=False)
    _asked: Task = field(init=False)

    def __post_init__(self) -> None:
        self._form = form_of(self.seed.triton_code) if self.seed.triton_code else None
        self._seen = {self._form.exact} if self._form else set()
        self._asked = replace(Task.of_candidate(self.seed), shape_general=True)

    def judge(self, conversation: Conversation, reply: Reply) -> Attempt:
        """`conversation` ends with `reply`."""
        read = parse_answer(reply.content, rename=True)
        if reply.finish == "refused" or not reply.content.strip():
            return self._lost(conversation, reply, Reason.NO_ANSWER, reply.content or "empty")
        if not read.code:
            if read.truncated or reply.finish == "length":
                return self._lost(conversation, reply, Reason.NO_ANSWER, "cut off")
            return self._lost(conversation, reply, Reason.NO_CODE, "no code")
        form = _form_of(read.code)
        code = form.exact if form else read.code
        if code in self._seen:
            return self._lost(conversation, reply, Reason.DUPLICATE_ANSWER, "as the kernel it was shown, or an answer")
        self._seen.add(code)
        near = similarity(form, self._form) if form and self._form else 0.0
        found = judge_code(read.code, self._asked, self.sandbox, VerifySettings())
        extern_ops = self._asked.extern_ops if found.purity is Purity.MIXED else ()
        candidate = self._candidate(conversation, reply, read.code, near)
        candidate = replace(candidate, purity=found.purity, extern_ops=extern_ops)
        if found.verdict is not None:
            return Attempt((Verified(candidate, found.verdict),), ())
        assert found.reason is not None  # there is code
        lost = Dropped(candidate.id, found.reason, found.evidence, found.counter_examples, (candidate,))
        return Attempt((), (DropRecord.of(STAGE, lost),))

    def nothing(self, conversation: Conversation, reply: Reply) -> Candidate:
        """In place of a candidate, for an answer that has no code."""
        return self._candidate(conversation, reply, "", 0.0)

    def _lost(self, conversation: Conversation, reply: Reply, reason: Reason, evidence: str) -> Attempt:
        candidate = self.nothing(conversation, reply)
        lost = Dropped(candidate.id, reason, evidence[:_EVIDENCE], (), (candidate,))
        return Attempt((), (DropRecord.of(STAGE, lost),))

    def _candidate(self, conversation: Conversation, reply: Reply, code: str, similarity: float) -> Candidate:
        """What the answer claims to be: for all sizes, as it was asked to, whatever the compiler made of the module."""
        return Candidate(
            probed=self.seed.probed,
            triton_code=code,
            kernels=launched_kernels(code) if code else (),
            purity=Purity.PURE,
            extern_ops=(),
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
