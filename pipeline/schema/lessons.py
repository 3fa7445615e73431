"""What came of asking models for the kernels of one module."""

from __future__ import annotations

from dataclasses import dataclass

from .loss import Loss
from .provenance import Explanation
from .records import Candidate, Verified


@dataclass(frozen=True, slots=True)
class Attempt:
    """One answer: verified, or lost."""

    verified: tuple[Verified, ...]  # one or none
    lost: tuple[Loss, ...]  # none or one

    @property
    def candidate(self) -> Candidate:
        return self.verified[0].candidate if self.verified else self.lost[0].candidates[0]


@dataclass(frozen=True, slots=True)
class Lesson:
    """All answers for one module, in the order of their turns."""

    id: str  # the module's
    attempts: tuple[Attempt, ...]
    explanations: tuple[Explanation, ...]  # of the verified kernel that the module came with
