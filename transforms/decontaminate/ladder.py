"""The ladder: rungs from equal text to equal behaviour. Each rung finds overlaps that the rungs before it miss."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from pydantic import NonNegativeFloat, NonNegativeInt

from .module_fingerprint import Fingerprint, Problem, packed

K = TypeVar("K", str, int)
LARGER = 6  # times a problem's operators, as a layer that is written out has: a larger row must share most behaviours


class Rung(StrEnum):
    """One comparison of a row with a problem."""

    SOURCE = "source"
    NGRAMS = "ngrams"
    OPERATORS = "operators"
    ONE_ADDED = "one_added"
    BEHAVIOUR = "behaviour"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Settings of decontamination. Rungs that compare digests need none."""

    ngrams: NonNegativeFloat = 0.75  # share of the problem's sampled runs of 10 tokens that the row has
    # operators of a problem that is found by its graph alone, or with one operator added
    graph_least: NonNegativeInt = 3
    least_operators: NonNegativeInt = 1  # problems of fewer operators remove no row; 2 keeps copies of single operators


DEFAULT = Thresholds()


@dataclass(frozen=True, slots=True)
class Hit:
    """An overlap of a row with a problem."""

    rung: Rung
    problem: str  # "benchmark/name"
    value: float  # measured similarity; 1 for equal digests


class Ladder:
    """The problems of several benchmarks, indexed so that a row is compared with a small number of them."""

    def __init__(self, problems: Sequence[Problem], thresholds: Thresholds = DEFAULT) -> None:
        self.problems, self._thresholds = problems, thresholds
        found = [problem.fingerprint for problem in problems]
        self._sources = _inverted((one.source,) for one in found)
        self._behaviours = _inverted(one.behaviours for one in found)
        least = thresholds.graph_least
        self._signatures = _inverted(one.signatures if one.operators >= least else () for one in found)
        runs = [packed(one.runs).tolist() for one in found]
        self._runs = _inverted(runs)
        self._run_counts = list(map(len, runs))
        self._operators = {problem.id: problem.fingerprint.operators for problem in problems}

    def climb(self, row: Fingerprint) -> tuple[Hit, ...]:
        """The hits of all rungs."""
        return tuple(Hit(rung, self.problems[i].id, round(value, 4)) for rung, i, value in self._found(row))

    def removes(self, hit: Hit) -> bool:
        """True if the row is removed for this hit: the problem has at least `least_operators` operators.

        A problem that did not run counts as large.
        """
        return not 0 < self._operators[hit.problem] < self._thresholds.least_operators

    def _found(self, row: Fingerprint) -> Iterator[tuple[Rung, int, float]]:
        yield from ((Rung.SOURCE, i, 1.0) for i in self._sources.get(row.source, ()))
        counts = Counter(i for run in set(packed(row.runs).tolist()) for i in self._runs.get(run, ()))
        for i, count in sorted(counts.items()):
            if (share := count / self._run_counts[i]) >= self._thresholds.ngrams:
                yield Rung.NGRAMS, i, share
        for rung, digests, known in (
            (Rung.OPERATORS, row.signatures, self._signatures),
            (Rung.ONE_ADDED, row.shortened, self._signatures),
        ):
            yield from ((rung, i, 1.0) for i in sorted({i for digest in digests for i in known.get(digest, ())}))
        yield from ((Rung.BEHAVIOUR, i, 1.0) for i in self._behave_alike(row))

    def _behave_alike(self, row: Fingerprint) -> Iterator[int]:
        """The problems with one of the row's behaviours, or with most of them if the row is much larger.

        Different modules coincide on some inputs: attention in windows and plain attention on a short sequence,
        normalisations over different axes where there is one axis.
        """
        counts = Counter(i for digest in row.behaviours for i in self._behaviours.get(digest, ()))
        for i, count in sorted(counts.items()):
            is_much_larger = 0 < LARGER * self.problems[i].fingerprint.size < row.size
            if not is_much_larger or 2 * count > len(row.behaviours):
                yield i


def _inverted(keys: Iterable[Iterable[K]]) -> dict[K, list[int]]:
    """Key -> the places of those that have it."""
    found: defaultdict[K, list[int]] = defaultdict(list)
    for i, of_one in enumerate(keys):
        for key in of_one:
            found[key].append(i)
    return dict(found)


def render_hits(hits: Iterable[Hit]) -> str:
    """Write hits as evidence: "source kernelbench/level1/19_ReLU 1.00; ..."."""
    return "; ".join(f"{hit.rung} {hit.problem} {hit.value:.2f}" for hit in hits)


def parse_hits(evidence: str) -> tuple[Hit, ...]:
    """Read hits from the text of `render_hits`. Raises: ValueError."""
    found = []
    for part in evidence.split("; "):
        rung, problem, value = part.split(" ")
        found.append(Hit(Rung(rung), problem, float(value)))
    return tuple(found)


def clean_name(name: str) -> str:
    """The name without white space and semicolons, which separate hits."""
    return re.sub(r"[\s;]+", "_", name)
