"""The answers of language models that were asked for kernels of one module."""

from __future__ import annotations

from dataclasses import dataclass

from .outcome import DropRecord
from .provenance import Explanation
from .records import Candidate, Verified


@dataclass(frozen=True, slots=True)
class Attempt:
    """One answer: either verified or dropped."""

    verified: tuple[Verified, ...]  # at most one
    lost: tuple[DropRecord, ...]  # one if `verified` is empty, else none

    @property
    def candidate(self) -> Candidate:
        return self.verified[0].candidate if self.verified else self.lost[0].candidates[0]


@dataclass(frozen=True, slots=True)
class DistillResult:
    """All answers for one module, in the order of their turns."""

    id: str  # id of the module
    attempts: tuple[Attempt, ...]
    explanations: tuple[Explanation, ...]  # of the verified kernel that the module came with
