"""What teachers were asked, what of it was verified, and what that cost."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from kernelquarry.pipeline.schema.outcome import DropRecord
from kernelquarry.pipeline.schema.provenance import Distillation
from kernelquarry.pipeline.schema.records import Verified

from .summary import Tally, tally

ACCEPTED = ""


@dataclass(frozen=True, slots=True)
class Answers:
    """Those of one model on one route at one turn of the conversation."""

    model: str
    route: str
    turn: int  # 1 is the first
    asked: int
    accepted: int
    usd: float

    @property
    def share(self) -> float:
        return self.accepted / self.asked


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Of a run. Replies that were in the cache count as what they cost when they came."""

    groups: tuple[Answers, ...]
    failures: Tally  # code of the reason -> number of answers
    tokens: int
    usd: float
    kernels: int  # verified answers that are kernels

    @property
    def usd_a_pair(self) -> float:
        """Dollars for each verified kernel; 0 if there is none."""
        return self.usd / self.kernels if self.kernels else 0.0


def acceptance(kept: Iterable[Verified], losses: Iterable[DropRecord]) -> Acceptance | None:
    """From what the stage `distill` left. None if no model was asked."""
    answers: list[tuple[Distillation, str]] = []
    for verified in kept:
        answers += [(distillation, ACCEPTED) for distillation in verified.candidate.distillation]
        answers += [(explanation.distillation, ACCEPTED) for explanation in verified.explanations]
    for loss in losses:
        answers += [(d, loss.reason) for candidate in loss.candidates for d in candidate.distillation]
    if not answers:
        return None
    asked: Counter[tuple[str, str, int]] = Counter()
    accepted: Counter[tuple[str, str, int]] = Counter()
    usd: defaultdict[tuple[str, str, int], float] = defaultdict(float)
    for distillation, reason in answers:
        key = (distillation.model, distillation.route, len(distillation.turns))
        asked[key] += 1
        accepted[key] += reason == ACCEPTED
        usd[key] += distillation.turns[-1].cost_usd  # those before are answers of their own
    last = [distillation.turns[-1] for distillation, _ in answers]
    return Acceptance(
        groups=tuple(Answers(*key, asked[key], accepted[key], usd[key]) for key in sorted(asked)),
        failures=tally(reason for _, reason in answers if reason != ACCEPTED),
        tokens=sum(turn.prompt_tokens + turn.completion_tokens for turn in last),
        usd=sum(turn.cost_usd for turn in last),
        kernels=sum(reason == ACCEPTED and distillation.route != "explain" for distillation, reason in answers),
    )
