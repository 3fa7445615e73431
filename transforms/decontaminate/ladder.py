"""The ladder: rungs from equal text to equal behaviour. Each rung finds overlaps that the rungs before it miss."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from kernelquarry.transforms.similarity.operator_signature import signature_of, size

from .module_fingerprint import NGRAMS, Fingerprint, Problem


class Rung(StrEnum):
    """One comparison of a row with a problem."""

    EXACT = "exact"
    NGRAMS_10 = "ngrams_10"
    NGRAMS_13 = "ngrams_13"
    MINHASH = "minhash"
    RENAMED = "renamed"
    ERASED = "erased"
    SIGNATURE = "signature"
    COMPOSED = "composed"
    BEHAVIOUR = "behaviour"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The values from which a rung calls a row contaminated. Rungs that compare digests have none."""

    ngrams_10: float = 0.75  # share of the problem's own runs of 10 tokens that the row has
    ngrams_13: float = 0.7
    minhash: float = 0.8  # estimated Jaccard similarity
    composed: float = 1.0  # share of the problem's operator paths that the row has
    composed_share: float = 0.5  # of the row's operators that are the problem's
    composed_least: int = 3  # operators that a problem needs to be searched for within rows
    runs_least: int = 8  # own runs that a problem needs to be compared
    common: int = 3  # a run that more problems of one benchmark share is no problem's own


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
        self._problems, self._thresholds = problems, thresholds
        self._equal = {rung: _by_digest(problems, rung) for rung in _DIGESTS}
        self._runs = [_Runs(problems, place, thresholds) for place in range(len(NGRAMS))]
        self._sketches = np.array([problem.fingerprint.sketch for problem in problems], np.uint32)
        self._inside = _by_rarest_path(problems, thresholds.composed_least)

    def climb(self, row: Fingerprint) -> tuple[Hit, ...]:
        """The hits of all rungs."""
        found = [*self._same(row), *self._alike(row), *self._within(row)]
        return tuple(Hit(rung, self._problems[i].id, round(value, 4)) for rung, i, value in found)

    def _same(self, row: Fingerprint) -> Iterator[tuple[Rung, int, float]]:
        for rung, problems in self._equal.items():
            same = {i for digest in _digests(row, rung) for i in problems.get(digest, ())}
            yield from ((rung, i, 1.0) for i in sorted(same))

    def _alike(self, row: Fingerprint) -> Iterator[tuple[Rung, int, float]]:
        limits = self._thresholds
        for rung, runs, least, packed in zip(
            (Rung.NGRAMS_10, Rung.NGRAMS_13), self._runs, (limits.ngrams_10, limits.ngrams_13), row.ngrams, strict=True
        ):
            yield from ((rung, i, share) for i, share in runs.shares(packed) if share >= least)
        if len(self._problems):
            similarity = (self._sketches == np.array(row.sketch, np.uint32)).mean(axis=1)
            for i in np.flatnonzero(similarity >= limits.minhash):
                yield Rung.MINHASH, int(i), float(similarity[i])

    def _within(self, row: Fingerprint) -> Iterator[tuple[Rung, int, float]]:
        operators = size(row.paths)
        for path in row.paths:
            for i in self._inside.get(path, ()):
                paths = self._problems[i].fingerprint.paths
                has = (paths & row.paths).total() / paths.total()
                share = size(paths) / operators
                if has >= self._thresholds.composed and self._thresholds.composed_share <= share < 1:
                    yield Rung.COMPOSED, i, share


_DIGESTS = (Rung.EXACT, Rung.RENAMED, Rung.ERASED, Rung.SIGNATURE, Rung.BEHAVIOUR)


def _digests(row: Fingerprint, rung: Rung) -> Sequence[str]:
    """The digests of a row on this rung. Two rows are equal on it if they share a digest."""
    match rung:
        case Rung.EXACT:
            return (row.exact,)
        case Rung.RENAMED:
            return (row.renamed,)
        case Rung.ERASED:
            return (row.erased,)
        case Rung.SIGNATURE:
            return (signature_of(row.paths),) if row.paths else ()
    return row.behaviours


def _by_digest(problems: Iterable[Problem], rung: Rung) -> dict[str, list[int]]:
    found: defaultdict[str, list[int]] = defaultdict(list)
    for i, problem in enumerate(problems):
        for digest in _digests(problem.fingerprint, rung):
            found[digest].append(i)
    return dict(found)


def _by_rarest_path(problems: Sequence[Problem], least: int) -> dict[str, list[int]]:
    """Rarest path -> problems. A row that has all paths of a problem has its rarest path too."""
    occurs = Counter(path for problem in problems for path in problem.fingerprint.paths)
    found: defaultdict[str, list[int]] = defaultdict(list)
    for i, problem in enumerate(problems):
        if size(problem.fingerprint.paths) >= least:
            found[min(problem.fingerprint.paths, key=lambda path: (occurs[path], path))].append(i)
    return dict(found)


class _Runs:
    """Token n-grams that at most `common` problems of a benchmark share; commoner n-grams are no evidence."""

    def __init__(self, problems: Sequence[Problem], place: int, thresholds: Thresholds) -> None:
        runs = [np.frombuffer(problem.fingerprint.ngrams[place], np.uint32).tolist() for problem in problems]
        common = Counter((p.benchmark, run) for p, found in zip(problems, runs, strict=True) for run in found)
        self._holders: defaultdict[int, list[int]] = defaultdict(list)
        self._own: list[int] = []
        for i, (problem, found) in enumerate(zip(problems, runs, strict=True)):
            own = [run for run in found if common[problem.benchmark, run] <= thresholds.common]
            self._own.append(len(own) if len(own) >= thresholds.runs_least else 0)
            for run in own:
                self._holders[run].append(i)

    def shares(self, packed: bytes) -> list[tuple[int, float]]:
        """Index of each matching problem, and the share of the problem's n-grams that occur in the row."""
        counts = Counter(i for run in np.frombuffer(packed, np.uint32).tolist() for i in self._holders.get(run, ()))
        return sorted((i, count / self._own[i]) for i, count in counts.items() if self._own[i])


def render_hits(hits: Iterable[Hit]) -> str:
    """Write hits as evidence: "renamed kernelbench/level1/19_ReLU 1.00; ..."."""
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
