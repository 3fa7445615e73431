"""Does the pair fit into a training context?"""

from __future__ import annotations

from dataclasses import dataclass

from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Row

from .objection import Objection


@dataclass(frozen=True, slots=True)
class Length:
    """Drops pairs whose two sides together have more characters than `at_most`.

    Tokenizers make a token of about three characters of such code, so the default is 16,000 tokens.
    """

    at_most: int = 48_000

    def __call__(self, row: Row) -> Objection | None:
        if (characters := self.measure(row)) <= self.at_most:
            return None
        sides = f"{len(row.python_code)} python, {len(row.triton_code)} triton"
        return Objection(Reason.TOO_LONG, f"{characters} characters ({sides})")

    def measure(self, row: Row) -> int:
        """Characters of both sides."""
        return len(row.python_code) + len(row.triton_code)
