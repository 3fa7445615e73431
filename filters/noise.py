"""Filter of rows whose code has many characters that are not ASCII."""

from __future__ import annotations

from dataclasses import dataclass

from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Row

from .objection import Objection


@dataclass(frozen=True, slots=True)
class Noise:
    """Drops rows if more than the share `at_most` of `python_code` is not ASCII."""

    at_most: float = 0.05

    def __call__(self, row: Row) -> Objection | None:
        if (share := self.measure(row)) <= self.at_most:
            return None
        return Objection(Reason.NOISE, f"{share:.1%} of {len(row.python_code)} characters")

    def measure(self, row: Row) -> float:
        """Share of the characters of `python_code` that are not ASCII."""
        text = row.python_code
        return sum(not character.isascii() for character in text) / max(1, len(text))
