"""Assign splits by the id of the cluster, so that no cluster is in two splits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

from kernelquarry.pipeline.schema.ids import HELD_OUT, sha256
from kernelquarry.pipeline.schema.outcome import Kept, Outcome
from kernelquarry.pipeline.schema.records import Pair, Rejection

R = TypeVar("R", Pair, Rejection)

SPLITS = ("train", "validation", "test")
_STEPS = 2**32  # values of the hash


@dataclass(frozen=True, slots=True)
class Shares:
    """Share of the clusters in each split; the rest goes to train."""

    validation: float = 0.05
    test: float = 0.05

    def __post_init__(self) -> None:
        if not (self.validation >= 0 and self.test >= 0 and self.validation + self.test <= 1):
            raise ValueError(f"shares must not be negative, nor be more than 1 together: {self}")


def split(pair: Pair, shares: Shares = Shares()) -> Outcome[Pair]:
    """The pair with its split. Raises: ValueError if it has no cluster yet."""
    return Kept(with_split(pair, shares))


def with_split(row: R, shares: Shares = Shares()) -> R:
    """The row with its split. Raises: ValueError if it has no cluster yet."""
    if not row.cluster:
        raise ValueError(f"{row.id} has no cluster: deduplicate before splitting")
    return replace(row, split=split_of(row.cluster, shares))


def split_of(cluster: str, shares: Shares) -> str:
    """The split of a cluster, whatever the other rows are. A larger share of test removes no cluster from it."""
    if cluster.startswith(HELD_OUT):
        return "test"
    place = int(sha256(f"split:{cluster}")[:8], 16) / _STEPS
    if place < shares.test:
        return "test"
    return "validation" if place < shares.test + shares.validation else "train"
