"""Filter of rows that do not fit a training context."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Row

from .objection import Objection

_PIECE = re.compile(r"[^\W\d_]+|\d|_|[^\w\s]+|\n\s*")
_TOKENS_A_PIECE = 1.096  # of SmolLM2, on the kernels of the tiny corpus


@dataclass(frozen=True, slots=True)
class Length:
    """Drops pairs with more than `at_most` characters in both codes together.

    Such code has about three characters a token, so the default is about 16,000 tokens.
    """

    at_most: int = 48_000

    def __call__(self, row: Row) -> Objection | None:
        if (characters := self.measure(row)) <= self.at_most:
            return None
        sides = f"{len(row.python_code)} python, {len(row.triton_code)} triton"
        return Objection(Reason.TOO_LONG, f"{characters} characters ({sides})")

    def measure(self, row: Row) -> int:
        """Number of characters in both codes."""
        return len(row.python_code) + len(row.triton_code)


def estimate_tokens(code: str) -> int:
    """Tokens of a model's tokenizer: within 3 % of SmolLM2's for nine kernels of ten."""
    return round(len(_PIECE.findall(code)) * _TOKENS_A_PIECE)
