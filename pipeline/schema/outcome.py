"""The three ways in which a record leaves a stage: kept, dropped or errored."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeAlias, TypeVar

from .reasons import Reason
from .records import Candidate, CounterExample

R = TypeVar("R")


def printable(text: str) -> str:
    """Escape what is unsafe to print: a guest's message may hold terminal control sequences or lone surrogates."""
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)


@dataclass(frozen=True, slots=True)
class Kept(Generic[R]):
    record: R

    @property
    def id(self) -> str:
        return str(self.record.id)  # type: ignore[attr-defined]  # records of stages have one


@dataclass(frozen=True, slots=True)
class Dropped:
    """A record that is unfit for the dataset, and the reason."""

    id: str
    reason: Reason
    evidence: str  # the measured value or message, capped by the stage that writes it
    counter_examples: tuple[CounterExample, ...] = ()  # at most one, of a candidate that was run
    candidates: tuple[Candidate, ...] = ()  # the candidate, if no earlier stage has kept it; else empty

    def __post_init__(self) -> None:
        object.__setattr__(self, "evidence", printable(self.evidence))


@dataclass(frozen=True, slots=True)
class Errored:
    """A record on which the pipeline itself failed. It is worth a bug report, and the next run retries it."""

    id: str
    error: str  # exception type
    message: str


Outcome: TypeAlias = Kept[R] | Dropped | Errored


class Status(StrEnum):
    DROPPED = "dropped"  # unfit for the dataset
    ERRORED = "errored"  # the pipeline failed on it


@dataclass(frozen=True, slots=True)
class DropRecord:
    """One row of a stage's `lost.parquet`: a record that was dropped or errored."""

    id: str  # id of the record that entered the stage
    stage: str  # line of the funnel that counts it
    status: Status  # a drop is a verdict on the record, an error a failure of the pipeline
    reason: str  # code of the `Reason`, or type of the exception
    evidence: str  # measured value, or message of the exception
    counter_examples: tuple[CounterExample, ...] = ()  # at most one, for candidates that verify dropped
    candidates: tuple[Candidate, ...] = ()  # the candidate of a model, which no earlier stage has kept; else none

    @classmethod
    def of(cls, stage: str, outcome: Dropped | Errored) -> DropRecord:
        match outcome:
            case Dropped(id, reason, evidence, counter_examples, candidates):
                return cls(id, stage, Status.DROPPED, reason.value, evidence, counter_examples, candidates)
            case Errored(id, error, message):
                return cls(id, stage, Status.ERRORED, error, message)

    @property
    def outcome(self) -> Dropped | Errored:
        if self.status is Status.DROPPED:
            return Dropped(self.id, Reason(self.reason), self.evidence, self.counter_examples, self.candidates)
        return Errored(self.id, self.reason, self.evidence)
