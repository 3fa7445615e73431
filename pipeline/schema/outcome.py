"""How a record leaves a stage: in exactly one of three ways."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from .reasons import Reason
from .records import Candidate, CounterExample

R = TypeVar("R")


def printable(text: str) -> str:
    """`text` as any file and terminal can take it: a message may be a guest's, and have what a terminal obeys, or half
    a character."""
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)


@dataclass(frozen=True, slots=True)
class Kept(Generic[R]):
    record: R


@dataclass(frozen=True, slots=True)
class Dropped:
    """The record is not fit, and this is why."""

    id: str
    reason: Reason
    evidence: str  # the measured value or message, capped by the stage that writes it
    counter_examples: tuple[CounterExample, ...] = ()  # none or one, of a candidate that was run
    candidates: tuple[Candidate, ...] = ()  # one if it is a candidate that no stage before has kept

    def __post_init__(self) -> None:
        object.__setattr__(self, "evidence", printable(self.evidence))


@dataclass(frozen=True, slots=True)
class Errored:
    """We failed, not the record: worth a bug report, retried by the next run."""

    id: str
    error: str  # exception type
    message: str


Outcome: TypeAlias = Kept[R] | Dropped | Errored
