"""A record that left a stage without being kept, as a row: the drop tables and the funnel are made of these."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from .outcome import Dropped, Errored
from .reasons import Reason
from .records import Candidate, CounterExample

_REASONS = {reason.value: reason for reason in Reason}


class Status(StrEnum):
    DROPPED = "dropped"
    ERRORED = "errored"


@dataclass(frozen=True, slots=True)
class Loss:
    """One `Dropped` or `Errored`, with the stage that it happened in."""

    id: str
    stage: str
    status: Status
    reason: str  # code of the `Reason`, or type of the exception
    evidence: str  # measured value, or message of the exception
    counter_examples: tuple[CounterExample, ...] = ()  # none or one
    candidates: tuple[Candidate, ...] = ()  # one if it is a candidate that no stage before has kept

    @classmethod
    def of(cls, stage: str, outcome: Dropped | Errored) -> Loss:
        match outcome:
            case Dropped(id, reason, evidence, counter_examples, candidates):
                return cls(id, stage, Status.DROPPED, reason.value, evidence, counter_examples, candidates)
            case Errored(id, error, message):
                return cls(id, stage, Status.ERRORED, error, message)

    @property
    def outcome(self) -> Dropped | Errored:
        if self.status is Status.DROPPED:
            return Dropped(self.id, _REASONS[self.reason], self.evidence, self.counter_examples, self.candidates)
        return Errored(self.id, self.reason, self.evidence)
