"""Distilling one module: several answers of each teacher, verified; failures go back to the teacher for repair."""

from __future__ import annotations

import math
from dataclasses import dataclass

from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.schema.distill_result import Attempt, DistillResult
from kernelquarry.pipeline.schema.outcome import DropRecord, Kept, Outcome
from kernelquarry.pipeline.schema.provenance import Explanation, Generator
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Candidate, Probed, Purity, Verified

from .answer_verdict import AnswerJudge
from .cache import Reply
from .client import ReplySource
from .conversation import Conversation
from .explanation import parse_explanation
from .teachers import DistillConfig


@dataclass(frozen=True, slots=True)
class TeacherSession:
    """The teachers of a run, and the source of their replies."""

    config: DistillConfig
    source: ReplySource


def distill(module: Verified | Probed, sandbox: Sandbox, session: TeacherSession) -> Outcome[DistillResult]:
    """Collect and verify the answers for one module.

    The routes "refine" and "explain" need the verified kernel of a `Verified`; a `Probed` has the route "write" alone.

    Raises:
        Unanswered, BudgetSpent, Postponed: a request has no reply yet. Other replies are in the cache already.
    """
    seed = module.candidate if isinstance(module, Verified) else _without_kernel(module)
    opened = [
        Conversation.open(teacher, route, sample, seed)
        for teacher in session.config.teachers
        if len(seed.probed.python_code) <= (teacher.longest_module or math.inf)
        for route in teacher.routes
        if route == "write" or seed.triton_code
        for sample in range(teacher.samples if route != "explain" else 1)
    ]
    explaining = [conversation for conversation in opened if conversation.route == "explain"]
    writing = [conversation for conversation in opened if conversation.route != "explain"]
    judge = AnswerJudge(seed, session.config, sandbox)
    attempts: list[Attempt] = []
    for turn in range(session.config.repairs + 1):
        repairing: list[Conversation] = []
        for conversation, reply in _fetch(writing, session):
            attempt = judge.judge(conversation, reply)
            attempts.append(attempt)
            if attempt.lost and turn < session.config.repairs and _is_repairable(attempt.lost[0]):
                repairing.append(conversation.with_repair_prompt(attempt.lost[0]))
        writing = repairing
    explanations: list[Explanation] = []
    for conversation, reply in _fetch(explaining, session):
        text, problem = parse_explanation(reply.content, seed.probed.python_code, seed.triton_code)
        if text is not None:
            distillation = conversation.distillation(session.config, reply.model, 0.0)
            explanations.append(Explanation(text.instruction, text.reasoning, distillation))
        else:
            attempts.append(judge.drop(conversation, reply, Reason.UNSUPPORTED_EXPLANATION, problem))
    return Kept(DistillResult(module.id, tuple(attempts), tuple(explanations)))


def _without_kernel(probed: Probed) -> Candidate:
    """A candidate with empty code, for a module that has no kernel."""
    generator = Generator("inductor", "", "", "{}")
    return Candidate(probed, "", (), Purity.PURE, (), True, generator, "")


def _fetch(conversations: list[Conversation], session: TeacherSession) -> list[tuple[Conversation, Reply]]:
    replies = session.source.fetch_all([conversation.request() for conversation in conversations])
    answered: list[tuple[Conversation, Reply]] = []
    for conversation, reply in zip(conversations, replies, strict=True):
        if isinstance(reply, Exception):
            raise reply
        answered.append((conversation.with_reply(reply), reply))
    return answered


def _is_repairable(drop: DropRecord) -> bool:
    """True unless the request was refused or the answer repeats another; a repair prompt would not help there."""
    return drop.reason not in (Reason.NO_ANSWER.value, Reason.DUPLICATE_ANSWER.value)
