"""Words that depend on a number."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """`1 file`, `2 classes`, `1,106 modules`."""
    plural = "" if number == 1 else "es" if noun.endswith("s") else "s"
    return f"{number:,} {noun}{plural}"
