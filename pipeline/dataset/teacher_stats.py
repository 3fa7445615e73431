"""Statistics of the teachers' answers: how many were verified, and their cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from kernelquarry.pipeline.schema.outcome import DropRecord
from kernelquarry.pipeline.schema.provenance import Distillation
from kernelquarry.pipeline.schema.records import Verified

from .summary import Tally, tally


@dataclass(frozen=True, slots=True)
class AnswerGroup:
    """The answers of one model on one route at one turn of the conversation."""

    model: str
    route: str
    turn: int  # counts from 1
    answers: int
    verified: int
    usd: float

    @property
    def share(self) -> float:
        return self.verified / self.answers


@dataclass(frozen=True, slots=True)
class TeacherStats:
    """The statistics of a run. A cached reply counts with its original cost."""

    groups: tuple[AnswerGroup, ...]
    failures: Tally  # code of the reason -> number of answers
    tokens: int
    usd: float
    kernels: int  # verified answers that are kernels, not explanations

    @property
    def usd_a_pair(self) -> float:
        """Dollars per verified kernel; 0 if there is none."""
        return self.usd / self.kernels if self.kernels else 0.0


def summarise_answers(kept: Iterable[Verified], drops: Iterable[DropRecord]) -> TeacherStats | None:
    """The statistics, from the records that the stage `distill` kept and dropped. None without any answer."""
    answers: list[tuple[Distillation, str]] = []  # with the code of the reason for a rejection, "" if verified
    for verified in kept:
        answers += [(distillation, "") for distillation in verified.candidate.distillation]
        answers += [(explanation.distillation, "") for explanation in verified.explanations]
    for drop in drops:
        answers += [(d, drop.reason) for candidate in drop.candidates for d in candidate.distillation]
    if not answers:
        return None
    groups: defaultdict[tuple[str, str, int], list[tuple[str, float]]] = defaultdict(list)
    for distillation, reason in answers:
        last = distillation.turns[-1]  # earlier turns are answers of their own
        groups[distillation.model, distillation.route, len(distillation.turns)].append((reason, last.cost_usd))
    turns = [distillation.turns[-1] for distillation, _ in answers]
    return TeacherStats(
        groups=tuple(
            AnswerGroup(*key, len(group), sum(not reason for reason, _ in group), sum(usd for _, usd in group))
            for key, group in sorted(groups.items())
        ),
        failures=tally(reason for _, reason in answers if reason),
        tokens=sum(turn.prompt_tokens + turn.completion_tokens for turn in turns),
        usd=sum(turn.cost_usd for turn in turns),
        kernels=sum(not reason and distillation.route != "explain" for distillation, reason in answers),
    )
