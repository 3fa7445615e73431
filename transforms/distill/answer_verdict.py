"""Turning a teacher's answer into a candidate, and the candidate into a verified kernel or a drop."""

from __future__ import annotations

from dataclasses import replace

from kernelquarry.filters.language.parsed_source import launched_kernels
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
_EVIDENCE = 500  # characters of a refusal that are kept


class AnswerJudge:
    """Judges all answers for one module, and drops an answer whose code it has judged before."""

    def __init__(self, seed: Candidate, config: DistillConfig, sandbox: Sandbox) -> None:
        """`seed`: the module's own kernel; its `triton_code` is empty if the module has none."""
        self.seed, self._config, self._sandbox = seed, config, sandbox
        self._form = form_of(seed.triton_code) if seed.triton_code else None
        self._seen = {self._form.exact} if self._form else set()
        self._task = replace(Task.of_candidate(seed), shape_general=True)

    def judge(self, conversation: Conversation, reply: Reply) -> Attempt:
        """Verify the code in `reply`, the last message of `conversation`."""
        parsed = parse_answer(reply.content, rename=True)
        if reply.finish == "refused" or not reply.content.strip():
            return self.drop(conversation, reply, Reason.NO_ANSWER, reply.content or "empty")
        if not parsed.code:
            if parsed.truncated or reply.finish == "length":
                return self.drop(conversation, reply, Reason.NO_ANSWER, "cut off")
            return self.drop(conversation, reply, Reason.NO_CODE, "no code")
        form = _form_or_none(parsed.code)
        exact = form.exact if form else parsed.code
        if exact in self._seen:
            evidence = "the same code as the kernel that was shown, or as an earlier answer"
            return self.drop(conversation, reply, Reason.DUPLICATE_ANSWER, evidence)
        self._seen.add(exact)
        near = similarity(form, self._form) if form and self._form else 0.0
        judgement = judge_code(parsed.code, self._task, self._sandbox, VerifySettings())
        candidate = replace(
            self._candidate(conversation, reply, judgement.published or parsed.code, near),
            purity=judgement.purity,
            extern_ops=self._task.extern_ops if judgement.purity is Purity.MIXED else (),
        )
        if judgement.verdict is not None:
            return Attempt((Verified(candidate, judgement.verdict),), ())
        assert judgement.reason is not None  # there is code, so a reason or a verdict
        return _dropped(
            Dropped(
                candidate.id, judgement.reason, judgement.evidence, judgement.counter_examples, candidates=(candidate,)
            )
        )

    def drop(self, conversation: Conversation, reply: Reply, reason: Reason, evidence: str) -> Attempt:
        """An attempt without code, for an answer that is not worth running."""
        candidate = self._candidate(conversation, reply, "", 0.0)
        return _dropped(Dropped(candidate.id, reason, evidence[:_EVIDENCE], candidates=(candidate,)))

    def _candidate(self, conversation: Conversation, reply: Reply, code: str, similarity: float) -> Candidate:
        """A candidate for inputs of any size, as the prompt demands, whatever guards the compiler's kernel has."""
        return Candidate(
            probed=self.seed.probed,
            triton_code=code,
            kernels=launched_kernels(code) if code else (),
            purity=Purity.PURE,
            extern_ops=(),
            shape_general=True,
            generator=conversation.generator(),
            inductor_code="",
            distillation=(conversation.distillation(self._config, reply.model, similarity),),
        )


def _dropped(outcome: Dropped) -> Attempt:
    return Attempt((), (DropRecord.of(STAGE, outcome),))


def _form_or_none(code: str) -> Form | None:
    """The normalised form of `code`; None if it does not parse."""
    try:
        return form_of(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
