"""Choose the pair that a build shows first: short enough to read at once, and more than a single operator."""

from __future__ import annotations

from collections.abc import Iterable

from kernelquarry.filters.triviality import base_name
from kernelquarry.pipeline.schema.records import Pair, Purity

_LINES = 50  # most lines of one side that still fit a screen


def choose_example(pairs: Iterable[Pair]) -> Pair | None:
    """The pure pair of the most operators whose sides both fit a screen, else the shortest pair; None without pairs."""
    return min(pairs, key=_rank, default=None)


def _rank(pair: Pair) -> tuple[bool, int, int, str]:
    sides = [code.count("\n") for code in (pair.python_code, pair.triton_code)]
    fits = max(sides) <= _LINES and pair.purity is Purity.PURE and pair.shape_general
    operators = len({base_name(operator) for operator in pair.operators})
    return not fits, -operators if fits else 0, sum(sides), pair.id
