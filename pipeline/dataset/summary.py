"""Statistics of a set of pairs, for the dataset card and the report."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import TypeAlias

from kernelquarry.filters.triviality import MOVEMENT, base_name
from kernelquarry.pipeline.schema.ids import canonical
from kernelquarry.pipeline.schema.provenance import Environment
from kernelquarry.pipeline.schema.records import Pair, Purity

from .speeds import Bar, Speeds, log_bars, speeds

Tally: TypeAlias = tuple[tuple[str, int], ...]  # (value, number of pairs), most frequent first

_LOWEST_EDGE = -11  # upper edge of the first bar of errors, in half decades: 3·10⁻⁶; it holds exact results too


@dataclass(frozen=True, slots=True)
class Summary:
    """Statistics of a set of pairs. Shares are between 0 and 1."""

    pairs: int
    splits: Tally
    matched: int  # pairs that match a problem of a benchmark
    licences: Tally
    packages: Tally
    operators: Tally  # without namespaces; without operators that only move data
    extern_operators: Tally
    generators: Tally  # "torch.inductor 2.13.0"
    tiers: Tally
    targets: Tally
    kernels: tuple[Bar, ...]  # histogram of the number of kernels per pair
    errors: tuple[Bar, ...]  # histogram of each pair's worst error as a share of its tolerance, log scale
    pure: float
    shape_general: float
    constructor_general: float
    trials: int
    workloads: int
    median_python_lines: int
    median_triton_lines: int
    environments: tuple[Environment, ...]
    speeds: Speeds | None  # None if no pair was timed


def summarise(pairs: Sequence[Pair]) -> Summary:
    number = max(1, len(pairs))
    return Summary(
        pairs=len(pairs),
        splits=tally(pair.split for pair in pairs),
        matched=sum(bool(pair.matched_problems) for pair in pairs),
        licences=tally(pair.licence.spdx for pair in pairs),
        packages=tally(f"{pair.source.package} {pair.source.revision}" for pair in pairs),
        operators=tally(name for pair in pairs for name in set(map(base_name, pair.operators)) - MOVEMENT),
        extern_operators=tally(operator for pair in pairs for operator in pair.extern_ops),
        generators=tally(f"{pair.generator.name} {pair.generator.version}" for pair in pairs),
        tiers=tally(tier for pair in pairs for tier in pair.verdict.tiers),
        targets=tally(target for pair in pairs for target in pair.verdict.targets),
        kernels=_kernel_bars([len(pair.kernels) for pair in pairs]),
        errors=_error_bars(pair.verdict.worst_ratio for pair in pairs),
        pure=sum(pair.purity is Purity.PURE for pair in pairs) / number,
        shape_general=sum(pair.shape_general for pair in pairs) / number,
        constructor_general=sum(pair.constructor_general for pair in pairs) / number,
        trials=sum(len(pair.verdict.trials) for pair in pairs),
        workloads=sum(len(pair.workloads) for pair in pairs),
        median_python_lines=_median_lines(pair.python_code for pair in pairs),
        median_triton_lines=_median_lines(pair.triton_code for pair in pairs),
        environments=tuple(
            sorted({pair.verdict.environment for pair in pairs}, key=lambda found: canonical(asdict(found)))
        ),
        speeds=speeds(pairs),
    )


def tally(values: Iterable[str]) -> Tally:
    counts = Counter(map(str, values))
    return tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _kernel_bars(counts: list[int], most: int = 8) -> tuple[Bar, ...]:
    """One bar for each number of kernels up to `most`, and one for more."""
    pairs = Counter(min(count, most + 1) for count in counts)
    exact = [Bar(str(count), pairs[count]) for count in range(min(pairs, default=1), most + 1)]
    return (*exact, Bar(f"> {most}", pairs[most + 1]))


def _error_bars(ratios: Iterable[float]) -> tuple[Bar, ...]:
    """Bars of half a decade up to 1, the largest ratio that verify accepts."""
    return log_bars(ratios, math.log10, _LOWEST_EDGE, [_edge_label(edge) for edge in range(_LOWEST_EDGE, 1)])


def _edge_label(half_decades: int) -> str:
    """The upper edge of a bar: "10⁻³" for a decade, "3·10⁻⁴" for the half before it."""
    decade, half = divmod(half_decades, 2)
    power = "1" if decade == 0 else f"10⁻{'⁰¹²³⁴⁵⁶⁷⁸⁹'[-decade]}"
    return f"3·{power}" if half else power


def _median_lines(texts: Iterable[str]) -> int:
    return round(median([text.count("\n") + 1 for text in texts] or [0]))
