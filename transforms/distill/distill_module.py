"""What models make of one module: several answers of each teacher, verified, and sent back with what was wrong."""

from __future__ import annotations

from dataclasses import dataclass

from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.schema.distill_result import Attempt, DistillResult
from kernelquarry.pipeline.schema.outcome import Dropped, DropRecord, Kept, Outcome
from kernelquarry.pipeline.schema.provenance import Explanation, Generator
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Candidate, Probed, Purity, Verified

from .answer_verdict import STAGE, Judge
from .cache import Reply
from .client import Asks
from .conversation import Conversation
from .explanation import read_explanation
from .teachers import DistillConfig


@dataclass(frozen=True, slots=True)
class TeacherSession:
    """Whom to ask, and what asks them."""

    teaching: DistillConfig
    asks: Asks


def distill(module: Verified | Probed, sandbox: Sandbox, school: TeacherSession) -> Outcome[DistillResult]:
    """All answers for one module. Its verified kernel is what is refined and explained; one that has none is written.

    Raises: Unanswered, BudgetSpent, Postponed: a question has no answer yet. What others were answered is in the cache.
    """
    seed = module.candidate if isinstance(module, Verified) else _bare(module)
    opened = [
        Conversation.open(teacher, route, sample, seed)
        for teacher in school.teaching.teachers
        for route in teacher.routes
        if route == "write" or seed.triton_code
        for sample in range(teacher.samples if route != "explain" else 1)
    ]
    explaining = [conversation for conversation in opened if conversation.route == "explain"]
    live = [conversation for conversation in opened if conversation.route != "explain"]
    judge = Judge(seed, school.teaching, sandbox)
    attempts: list[Attempt] = []
    for turn in range(school.teaching.repairs + 1):
        again: list[Conversation] = []
        for conversation, reply in _ask(live, school):
            attempt = judge.judge(conversation, reply)
            attempts.append(attempt)
            if attempt.lost and turn < school.teaching.repairs and _can_be_repaired(attempt.lost[0]):
                again.append(conversation.told(attempt.lost[0]))
        live = again
    explanations, refused = _explained(_ask(explaining, school), judge)
    return Kept(DistillResult(module.id, (*attempts, *refused), explanations))


def _bare(probed: Probed) -> Candidate:
    """In place of the kernel that a module has not: nothing is left to PyTorch by it."""
    generator = Generator("inductor", "", "", "{}")
    return Candidate(probed, "", (), Purity.PURE, (), True, generator, "")


def _ask(conversations: list[Conversation], school: TeacherSession) -> list[tuple[Conversation, Reply]]:
    replies = school.asks.ask_all([conversation.ask() for conversation in conversations])
    for reply in replies:
        if isinstance(reply, Exception):
            raise reply
    pairs = zip(conversations, replies, strict=True)
    return [(talk.answered(reply), reply) for talk, reply in pairs if isinstance(reply, Reply)]


def _can_be_repaired(loss: DropRecord) -> bool:
    """A request that is refused, and an answer that there is already, are not asked about."""
    return loss.reason not in (Reason.NO_ANSWER.value, Reason.DUPLICATE_ANSWER.value)


def _explained(
    answered: list[tuple[Conversation, Reply]], judge: Judge
) -> tuple[tuple[Explanation, ...], tuple[Attempt, ...]]:
    """Those that the code bears out, and the others as attempts without code."""
    candidate, explanations, refused = judge.seed, [], []
    for conversation, reply in answered:
        distillation = conversation.distillation(judge.teaching, reply.model, 0.0)
        said, wrong = read_explanation(reply.content, candidate.probed.python_code, candidate.triton_code)
        if said is not None:
            explanations.append(Explanation(said.instruction, said.reasoning, distillation))
        else:
            refused.append(_not_borne_out(judge.nothing(conversation, reply), wrong))
    return tuple(explanations), tuple(refused)


def _not_borne_out(nothing: Candidate, wrong: str) -> Attempt:
    dropped = Dropped(nothing.id, Reason.UNSUPPORTED_EXPLANATION, wrong, (), (nothing,))
    return Attempt((), (DropRecord.of(STAGE, dropped),))
