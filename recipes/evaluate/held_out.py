"""Frozen sets of held-out problems, chosen by rule from a dataset's test split, and what training saw of each.

    modules    mined modules, as many of each number of operators as there are
    slices     pieces cut from modules, likewise
    easy       both, of at most two operators in one kernel of about 500 tokens

A rule of hashes decides, so that the same dataset gives the same set, and a larger one keeps most of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kernelquarry.filters.triviality import MOVEMENT, base_name
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.ids import sha256
from kernelquarry.pipeline.schema.records import Pair
from kernelquarry.recipes.config import PhaseSection
from kernelquarry.recipes.train.schedule import is_within, kind_of

PROBLEMS = 300
EASY = PhaseSection(epochs=1, operators=2, kernels=1, tokens=500)
_LONGEST = 8000  # characters of a module: a longer one leaves no room for its answer
_STRATA = ((1, 1), (2, 2), (3, 4), (5, 8), (9, 16), (17, 1 << 30))  # calls of operators in one forward
UNSEEN_OPERATOR = "an operator unseen in training"
UNSEEN_COMBINATION = "seen operators, unseen combination"
SEEN = "seen combination of operators"


def held_out(pairs: Iterable[Pair], suite: str, number: int = PROBLEMS) -> list[Pair]:
    """At most `number` pairs of the test split, one for each module, drawn in turn from each stratum of operators.

    Args:
        suite: "modules", "slices" or "easy".

    Raises:
        UserError: the test split has no module for the suite.
    """
    modules: dict[str, Pair] = {}
    for pair in sorted(pairs, key=lambda pair: pair.id):
        if pair.split == "test" and _belongs(pair, suite) and len(pair.python_code) <= _LONGEST:
            modules.setdefault(pair.python_code, pair)
    if not modules:
        raise UserError(f"the dataset's split test has no {suite} rows: build a larger one")
    drawn = sorted(modules.values(), key=lambda pair: sha256(f"held out:{pair.python_code}"))
    strata = [deque(pair for pair in drawn if stratum(pair) == name) for name in [*map(_name, _STRATA), ""]]
    chosen: list[Pair] = []
    while len(chosen) < number and any(strata):
        chosen += [pairs.popleft() for pairs in strata if pairs]
    return sorted(chosen[:number], key=lambda pair: pair.id)


def _belongs(pair: Pair, suite: str) -> bool:
    kind = kind_of(pair)
    return kind != "composed" and is_within(pair, EASY) if suite == "easy" else kind == suite


def stratum(pair: Pair) -> str:
    """The stratum of a pair's number of operators, such as "3-4 operators"; "" if it was not measured."""
    calls = pair.measures.operators
    return next((_name(bounds) for bounds in _STRATA if bounds[0] <= max(1, calls) <= bounds[1] and calls >= 0), "")


def _name(bounds: tuple[int, int]) -> str:
    low, high = bounds
    if low == high:
        return f"{low} operator{'s' * (low > 1)}"
    return f"{low} or more operators" if high == _STRATA[-1][1] else f"{low}-{high} operators"


@dataclass(frozen=True, slots=True)
class Seen:
    """The operators of the training rows."""

    operators: frozenset[str]
    combinations: tuple[frozenset[str], ...]  # of each row, none within another

    @classmethod
    def of(cls, pairs: Iterable[Pair]) -> Seen:
        """The operators of the pairs of the train split."""
        distinct = {computing(pair.operators) for pair in pairs if pair.split == "train"}
        largest: list[frozenset[str]] = []
        for one in sorted(distinct, key=lambda one: (-len(one), sorted(one))):
            if not any(one <= other for other in largest):
                largest.append(one)
        return cls(frozenset().union(*largest), tuple(largest))

    def label(self, pair: Pair) -> str:
        """The label of a problem. Its combination is seen if one training row has all of its operators."""
        operators = computing(pair.operators)
        if not operators <= self.operators:
            return UNSEEN_OPERATOR
        return SEEN if any(operators <= row for row in self.combinations) else UNSEEN_COMBINATION


def computing(operators: Sequence[str]) -> frozenset[str]:
    """Names of the operators that compute, without overloads."""
    return frozenset(map(base_name, operators)) - MOVEMENT
