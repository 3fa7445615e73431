"""Filter of rows with personal contact data."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Row

from .objection import Objection

PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("e-mail address", re.compile(r"\b[\w.+-]+@(?!(?:[\w-]+\.)*example\.)[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}\b")),
    ("telephone number", re.compile(r"(?<![\w.+])\+\d{1,3}[ -]\(?\d{2,4}\)?(?:[ -]\d{2,4}){2,3}(?![\w.])")),
)


@dataclass(frozen=True, slots=True)
class Personal:
    """Drops rows with an e-mail address or a telephone number. The evidence has the place, never the data."""

    patterns: tuple[tuple[str, re.Pattern[str]], ...] = PATTERNS

    def __call__(self, row: Row) -> Objection | None:
        for column in ("python_code", "triton_code"):
            text = getattr(row, column)
            for name, pattern in self.patterns:
                if match := pattern.search(text):
                    line = text.count("\n", 0, match.start()) + 1
                    return Objection(Reason.PERSONAL, f"{name} in {column}, line {line}")
        return None

    def measure(self, row: Row) -> int:
        """Number of matches."""
        text = f"{row.python_code}\n{row.triton_code}"
        return sum(len(pattern.findall(text)) for _, pattern in self.patterns)
