"""What is in a set of pairs, in figures: the dataset card and the report are made of these."""

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

from .speeds import Bar, Speeds, speeds

Tally: TypeAlias = tuple[tuple[str, int], ...]  # (value, number of pairs), most frequent first

LOWEST_DECADE = -6  # the histogram of errors starts here; smaller ones, and exact results, are in its first bar
BARS_PER_DECADE = 2


@dataclass(frozen=True, slots=True)
class Summary:
    """Figures of a set of pairs. Shares are between 0 and 1."""

    pairs: int
    splits: Tally
    licences: Tally
    packages: Tally
    operators: Tally  # those that compute, without their namespace
    extern_operators: Tally
    generators: Tally  # "torch.inductor 2.13.0"
    tiers: Tally
    targets: Tally
    kernels: tuple[Bar, ...]  # kernels of a pair
    errors: tuple[Bar, ...]  # worst error of a pair as a share of its tolerance, log scale
    pure: float
    shape_general: float
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
        licences=tally(pair.licence.spdx for pair in pairs),
        packages=tally(f"{pair.source.package} {pair.source.revision}" for pair in pairs),
        operators=tally(name for pair in pairs for name in set(map(base_name, pair.operators)) - MOVEMENT),
        extern_operators=tally(operator for pair in pairs for operator in pair.extern_ops),
        generators=tally(f"{pair.generator.name} {pair.generator.version}" for pair in pairs),
        tiers=tally(tier for pair in pairs for tier in pair.verdict.tiers),
        targets=tally(target for pair in pairs for target in pair.verdict.targets),
        kernels=_kernel_bars([len(pair.kernels) for pair in pairs]),
        errors=_error_bars([pair.verdict.worst_ratio for pair in pairs]),
        pure=sum(pair.purity is Purity.PURE for pair in pairs) / number,
        shape_general=sum(pair.shape_general for pair in pairs) / number,
        trials=sum(len(pair.verdict.trials) for pair in pairs),
        workloads=sum(len(pair.workloads) for pair in pairs),
        median_python_lines=_median_lines(pair.python_code for pair in pairs),
        median_triton_lines=_median_lines(pair.triton_code for pair in pairs),
        environments=tuple(sorted({pair.verdict.environment for pair in pairs}, key=_environment_order)),
        speeds=speeds(pairs),
    )


def tally(values: Iterable[str]) -> Tally:
    return tuple(
        sorted(((str(value), n) for value, n in Counter(values).items()), key=lambda item: (-item[1], item[0]))
    )


def _kernel_bars(counts: list[int], most: int = 8) -> tuple[Bar, ...]:
    """One bar for each number of kernels up to `most`, and one for more."""
    found = Counter(min(count, most + 1) for count in counts)
    exact = [Bar(str(count), found[count]) for count in range(min(found, default=1), most + 1)]
    return (*exact, Bar(f"> {most}", found[most + 1]))


def _error_bars(ratios: list[float]) -> tuple[Bar, ...]:
    """Bars of half a decade from 10^LOWEST_DECADE to 1; every accepted ratio is at most 1."""
    bars = -LOWEST_DECADE * BARS_PER_DECADE
    found = Counter(_error_bar(ratio, bars) for ratio in ratios)
    return tuple(Bar(_edge(i + 1), found[i]) for i in range(bars))


def _edge(halves: int) -> str:
    """The upper edge of a bar: "10⁻³" for a decade, "3·10⁻⁴" for the half before it."""
    decade, half = divmod(LOWEST_DECADE * BARS_PER_DECADE + halves, BARS_PER_DECADE)
    power = "1" if decade == 0 else f"10⁻{'⁰¹²³⁴⁵⁶⁷⁸⁹'[-decade]}"
    return f"3·{power}" if half else power


def _error_bar(ratio: float, bars: int) -> int:
    if ratio <= 0:
        return 0
    place = math.ceil((math.log10(ratio) - LOWEST_DECADE) * BARS_PER_DECADE) - 1
    return min(max(place, 0), bars - 1)


def _median_lines(texts: Iterable[str]) -> int:
    return round(median([text.count("\n") + 1 for text in texts] or [0]))


def _environment_order(environment: Environment) -> str:
    return canonical(asdict(environment))
