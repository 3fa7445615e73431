"""Labels for the best of several pairs of one module; all verified pairs stay in the dataset."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace

from kernelquarry.pipeline.schema.records import Pair, Purity
from kernelquarry.transforms.similarity.form import THRESHOLD

FASTEST, SHORTEST, PUREST, NEAR_LOWERED = "fastest", "shortest", "purest", "near_lowered"


def annotate_variants(pairs: Iterable[Pair]) -> list[Pair]:
    """The pairs in their order, with `marks`: fastest, shortest and purest of a module, and near the compiler's kernel.

    Ties go to the smallest id. Speeds are compared only between pairs that were timed on the same workload and GPU;
    without two of these, no pair is the fastest.
    """
    pairs = list(pairs)
    modules: defaultdict[str, list[Pair]] = defaultdict(list)
    for pair in sorted(pairs, key=lambda pair: pair.id):
        modules[pair.python_code].append(pair)
    marks: defaultdict[str, list[str]] = defaultdict(list)
    for group in modules.values():
        if len(group) > 1:
            timed = _comparable(group)
            if len(timed) > 1:
                marks[_least(timed, _median_us).id].append(FASTEST)
            marks[_least(group, lambda pair: len(pair.triton_code)).id].append(SHORTEST)
            marks[_least(group, _impurity).id].append(PUREST)
        for pair in group:
            if any(distillation.similarity >= THRESHOLD for distillation in pair.distillation):
                marks[pair.id].append(NEAR_LOWERED)
    return [replace(pair, marks=tuple(marks[pair.id])) for pair in pairs]


def _least(group: list[Pair], key: Callable[[Pair], float]) -> Pair:
    return min(group, key=lambda pair: (key(pair), pair.id))


def _impurity(pair: Pair) -> float:
    """Rank by PyTorch operators outside of the kernels, then by launches, each of which is a pass over memory."""
    return 1000 * len(pair.extern_ops) * (pair.purity is Purity.MIXED) + pair.verdict.launches


def _comparable(group: list[Pair]) -> list[Pair]:
    """Pairs with trusted timings on the workload and GPU of the first timed pair."""
    timed = [pair for pair in group if pair.timings and not pair.timings[0].suspect and _median_us(pair)]
    if not timed:
        return []
    first = timed[0].timings[0]
    setup = (first.workload, first.environment.device)
    return [pair for pair in timed if (pair.timings[0].workload, pair.timings[0].environment.device) == setup]


def _median_us(pair: Pair) -> float:
    return next((timed.median_us for timed in pair.timings[0].contenders if timed.name == "candidate"), 0.0)
