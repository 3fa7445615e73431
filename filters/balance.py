"""Caps on how many rows may have one thing in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kernelquarry.pipeline.schema.ids import sha256
from kernelquarry.pipeline.schema.records import Pair


@dataclass(frozen=True, slots=True)
class Caps:
    """The most rows of one cluster, with the same operators, and of one package."""

    cluster: int = 50
    operators: int = 100
    repository: int = 5_000


def over_caps(rows: Sequence[Pair], caps: Caps) -> dict[str, str]:
    """Id -> what there is too much of, for each row that goes. Which rows stay follows from their ids alone."""
    groups: tuple[tuple[str, int, Callable[[Pair], object]], ...] = (
        ("cluster", caps.cluster, lambda row: row.cluster),
        ("operators", caps.operators, lambda row: row.operators),
        ("repository", caps.repository, lambda row: row.source.package),
    )
    found: dict[str, str] = {}
    for name, most, key in groups:
        stay = Counter[object]()
        for row in sorted(rows, key=lambda row: sha256(row.id)):
            if row.id not in found:
                stay[key(row)] += 1
                if stay[key(row)] > most:
                    found[row.id] = f"more than {most} of one {name}"
    return found
