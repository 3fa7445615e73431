"""How near each row is to KernelBench: the share of runs of tokens that its module and a problem have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kernelquarry.pipeline.check.kernelbench import KernelbenchProblem
from kernelquarry.pipeline.schema.records import Pair
from kernelquarry.transforms.similarity.nearest import nearest


@dataclass(frozen=True, slots=True)
class Nearest:
    """The problem that a row is nearest to."""

    pair: Pair
    problem: KernelbenchProblem
    similarity: float  # see `transforms/similarity/nearest.py`; names count


def nearest_problems(pairs: Sequence[Pair], problems: Sequence[KernelbenchProblem]) -> Iterator[Nearest]:
    """For each row the problem with the largest similarity, the first of equal ones."""
    found = nearest((pair.python_code for pair in pairs), [problem.code for problem in problems])
    for pair, (place, similarity) in zip(pairs, found, strict=True):
        yield Nearest(pair, problems[place], similarity)
