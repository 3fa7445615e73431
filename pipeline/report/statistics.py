"""The page of statistics of a dataset: size, difficulty, operators, sources, licences, and nearness to KernelBench."""

from __future__ import annotations

import importlib.metadata
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from kernelquarry.pipeline.check.kernelbench import KernelbenchProblem
from kernelquarry.pipeline.dataset.render_template import render
from kernelquarry.pipeline.dataset.speeds import Bar
from kernelquarry.pipeline.dataset.summary import summarise, tally
from kernelquarry.pipeline.schema.records import Contamination, Pair
from kernelquarry.transforms.decontaminate import read_index
from kernelquarry.transforms.decontaminate.benchmark_index import SHIPPED, SUFFIX
from kernelquarry.transforms.read.compositions import PACKAGE as COMPOSED
from kernelquarry.transforms.similarity.form import THRESHOLD
from kernelquarry.transforms.similarity.nearest_text import nearest

from .kernelbook import compare_with_kernelbook
from .report import breakable

TEMPLATE = Path(__file__).parent / "templates" / "statistics.html.j2"
MOST_TOKENS = 700  # of a small pair's kernel
LEVELS = (1, 2, 3)  # of KernelBench; problems of level 4 are whole language models
NEAREST_SHOWN = 12
_FEW = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30)  # upper edges of bars
_LINES = (10, 15, 20, 30, 40, 60, 80, 120, 160, 240)
_TOKENS = (250, 350, 500, 700, 1000, 1400, 2000, 2800, 4000, 5600, 8000)
_SIMILARITIES = tuple(step / 20 for step in range(1, 17))


@dataclass(frozen=True, slots=True)
class Histogram:
    """The distribution of a quantity."""

    title: str
    bars: tuple[Bar, ...]
    middle: float  # median
    number: int  # of values


@dataclass(frozen=True, slots=True)
class Nearest:
    """The problem that a row is nearest to."""

    pair: Pair
    problem: KernelbenchProblem
    similarity: float  # share of runs of tokens that both modules have, see `transforms/similarity`; names count


def render_statistics(
    name: str, pairs: Sequence[Pair], removed: Sequence[Contamination], problems: Sequence[KernelbenchProblem] = ()
) -> str:
    """The page of the dataset `name`, one self-contained file.

    Args:
        pairs: at least one.
        removed: modules that overlap a benchmark.
        problems: of KernelBench, to compare each row with; empty: rows are not compared.
    """
    near = sorted(nearest_problems(pairs, problems) if problems else (), key=lambda one: (-one.similarity, one.pair.id))
    return render(
        TEMPLATE,
        name=name,
        release=importlib.metadata.version("kernelquarry"),
        summary=summarise(pairs),
        small=sum(p.measures.kernels == 1 and p.measures.tokens <= MOST_TOKENS for p in pairs) / len(pairs),
        most_tokens=MOST_TOKENS,
        compared=compare_with_kernelbook(pairs, len(removed)),
        sizes=size_histograms(pairs),
        difficulties=difficulty_histograms(pairs),
        levels=level_histograms(),
        kinds=tally(map(_kind, pairs)),
        removed=len(removed),
        removing=tally(problem.partition("/")[0] for row in removed for problem in row.problems),
        nearness=make_histogram("", [one.similarity for one in near], _SIMILARITIES),
        nearest=near[:NEAREST_SHOWN],
        threshold=THRESHOLD,
        breakable=breakable,
    )


def nearest_problems(pairs: Sequence[Pair], problems: Sequence[KernelbenchProblem]) -> Iterator[Nearest]:
    """For each row the problem with the largest similarity, the first of equal ones."""
    found = nearest((pair.python_code for pair in pairs), [problem.code for problem in problems])
    for pair, (place, similarity) in zip(pairs, found, strict=True):
        yield Nearest(pair, problems[place], similarity)


def make_histogram(title: str, values: Sequence[float], edges: Sequence[float]) -> Histogram:
    """A histogram with a bar for the values up to each edge, without those up to the edge before, and one for more."""
    counts = Counter(bisect_left(edges, value) for value in values)
    labels = [f"{edge / 1000:g}k" if edge >= 1000 else f"{edge:g}" for edge in edges]
    bars = tuple(Bar(label, counts[place]) for place, label in enumerate([*labels, f"> {labels[-1]}"]))
    return Histogram(title, bars, median(values or [0.0]), len(values))


def size_histograms(pairs: Sequence[Pair]) -> list[Histogram]:
    return [
        make_histogram("Tokens of the kernel's file", _known(pair.measures.tokens for pair in pairs), _TOKENS),
        make_histogram("Lines of the module's file", [pair.python_code.count("\n") for pair in pairs], _LINES),
        make_histogram("Sets of sizes that a pair was verified on", [len(pair.workloads) for pair in pairs], _FEW[:6]),
    ]


def difficulty_histograms(pairs: Sequence[Pair]) -> list[Histogram]:
    return [
        make_histogram("Operators of the module", _known(pair.measures.operators for pair in pairs), _FEW),
        make_histogram("Longest chain of operators", _known(pair.measures.depth for pair in pairs), _FEW),
        make_histogram("Kernels", _known(pair.measures.kernels for pair in pairs), _FEW[:8]),
    ]


def level_histograms() -> list[Histogram]:
    """The operators of KernelBench's problems, by level, from the shipped index. A layer counts as one."""
    problems = read_index(SHIPPED / f"kernelbench{SUFFIX}")[1]
    return [
        make_histogram(
            f"Operators, KernelBench level {level}",
            [
                problem.fingerprint.size
                for problem in problems
                if problem.name.startswith(f"level{level}/") and problem.fingerprint.size
            ],
            _FEW,
        )
        for level in LEVELS
    ]


def _known(values: Iterable[int]) -> list[int]:
    """The values that were measured."""
    return [value for value in values if value >= 0]


def _kind(pair: Pair) -> str:
    if pair.source.corpus == COMPOSED:
        return "composed from several modules"
    return "cut from a module" if pair.slice_of else "a module as it was found"
