"""Is the text mostly what a reader of code can read?"""

from __future__ import annotations

from dataclasses import dataclass

from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Row

from .objection import Objection


@dataclass(frozen=True, slots=True)
class Noise:
    """Drops rows of whose `python_code` more than `at_most` is not ASCII."""

    at_most: float = 0.05

    def __call__(self, row: Row) -> Objection | None:
        text = row.python_code
        share = sum(not character.isascii() for character in text) / max(1, len(text))
        return Objection(Reason.NOISE, f"{share:.1%} of {len(text)} characters") if share > self.at_most else None
