"""How near each row is to KernelBench: the share of runs of tokens that its module and a problem have in common."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from kernelquarry.pipeline.check.kernelbench import KernelbenchProblem
from kernelquarry.pipeline.schema.records import Pair
from kernelquarry.transforms.similarity import normal_form
from kernelquarry.transforms.similarity.form import SHINGLE, shingles, tokens


@dataclass(frozen=True, slots=True)
class Nearest:
    """The problem that a row is nearest to."""

    pair: Pair
    problem: KernelbenchProblem
    similarity: float  # Jaccard, of the distinct runs of SHINGLE tokens


def nearest_problems(pairs: Iterable[Pair], problems: Sequence[KernelbenchProblem]) -> Iterator[Nearest]:
    """For each row the problem with the largest similarity, the first of equal ones.

    Formatting, comments, annotations and `get_inputs()` do not count, names do. Raises: SyntaxError: a problem does
    not parse.
    """
    sizes: list[int] = []
    holders: defaultdict[int, list[int]] = defaultdict(list)  # run -> places of the problems that have it
    for place, problem in enumerate(problems):
        found = _runs(problem.code)
        sizes.append(len(found))
        for run in found:
            holders[run].append(place)
    for pair in pairs:
        found = _runs(pair.python_code)
        shared = Counter(place for run in found for place in holders.get(run, ()))
        similarities = {place: count / (len(found) + sizes[place] - count) for place, count in shared.items()}
        best = max(sorted(similarities), key=similarities.__getitem__, default=0)
        yield Nearest(pair, problems[best], similarities.get(best, 0.0))


def _runs(code: str) -> list[int]:
    words = tokens(ast.unparse(normal_form.exact(code)))
    runs: list[int] = np.frombuffer(shingles(words, SHINGLE), np.uint32).tolist()
    return runs
