"""Filter of rows with credentials.

Only forms with a distinctive prefix, alphabet and length are searched, so that nearly every match is real. Passwords
and keys without such a form are not found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Rejection, Row

from .objection import Objection

PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(rf"(?<![A-Za-z0-9_-])(?:{pattern})(?![A-Za-z0-9_-])"))
    for name, pattern in (
        ("anthropic-key", r"sk-ant-[A-Za-z0-9_-]{32,}"),
        ("aws-access-key", r"(?:AKIA|ASIA)[A-Z2-7]{16}"),
        ("github-token", r"gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{82}"),
        ("gitlab-token", r"glpat-[A-Za-z0-9_-]{20}"),
        ("google-key", r"AIza[A-Za-z0-9_-]{35}"),
        ("huggingface-token", r"hf_[A-Za-z]{34}"),
        ("openai-key", r"sk-(?:proj-)?[A-Za-z0-9_-]*T3BlbkFJ[A-Za-z0-9_-]{16,}"),
        ("private-key", r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----"),
        ("pypi-token", r"pypi-AgEI[A-Za-z0-9_-]{50,}"),
        ("slack-token", r"xox[abeprs]-[0-9]{8,}-[A-Za-z0-9-]{16,}"),
        ("stripe-key", r"[rs]k_live_[A-Za-z0-9]{24,}"),
    )
)
COLUMNS = ("python_code", "triton_code", "inductor_code", "init_args")  # every column with text from a mined file


@dataclass(frozen=True, slots=True)
class Secrets:
    """Drops rows with text that looks like a credential. The evidence has the place, never the text."""

    patterns: tuple[tuple[str, re.Pattern[str]], ...] = PATTERNS

    def __call__(self, row: Row) -> Objection | None:
        for column, text in _texts(row):
            for name, pattern in self.patterns:
                if match := pattern.search(text):
                    line = text.count("\n", 0, match.start()) + 1
                    return Objection(Reason.SECRET, f"{name} in {column}, line {line}")
        return None

    def measure(self, row: Row) -> int:
        """Number of matches."""
        return sum(len(pattern.findall(text)) for _, text in _texts(row) for _, pattern in self.patterns)


def _texts(row: Row) -> Iterator[tuple[str, str]]:
    for column in COLUMNS:
        yield column, getattr(row, column)
    if isinstance(row, Rejection):  # these columns have messages raised by its code
        yield "evidence", row.evidence
        for example in row.counter_examples:
            yield "counter_examples", example.found
