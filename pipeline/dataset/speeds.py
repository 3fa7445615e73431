"""Speedups of a set of pairs over eager and `torch.compile`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from kernelquarry.pipeline.schema.records import Pair, Timing

_LOWEST, _HIGHEST = -4, 6  # upper edges of speedup bars, in half octaves: 1/4 to 8; one more bar holds the rest


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of a histogram."""

    label: str
    count: int


@dataclass(frozen=True, slots=True)
class Speed:
    """Speedups of the candidates over one contender, without suspect timings."""

    over: str
    pairs: int
    faster: float  # share of the pairs whose candidate is faster: fast_1
    median: float  # median speedup
    bars: tuple[Bar, ...]  # histogram of the speedups, log scale


@dataclass(frozen=True, slots=True)
class Speeds:
    timed: int  # number of pairs with times
    enlarged: int  # number of those that were timed on a call larger than the row's own
    suspects: int  # number of those whose numbers do not fit together
    over: tuple[Speed, ...]


def speeds(pairs: Sequence[Pair]) -> Speeds | None:
    """The speedups of the timed pairs; None if no pair was timed."""
    timings = [timing for pair in pairs for timing in pair.timings if timing.contenders]
    if not timings:
        return None
    sound = [timing for timing in timings if not timing.suspect]
    return Speeds(
        timed=len(timings),
        enlarged=sum(timing.enlarged for timing in timings),
        suspects=len(timings) - len(sound),
        over=(
            _speed("eager", [timing.over_eager for timing in sound]),
            _speed("torch.compile", [timing.over_compile for timing in sound]),
        ),
    )


def describe_timing(timing: Timing) -> str:
    """A pair's run times, in one line."""
    times = [f"{timed.name} {timed.median_us:,.1f} µs" for timed in timing.contenders]
    notes = [timing.left_out, f"suspect: {timing.suspect}" if timing.suspect else ""]
    return "; ".join(filter(None, [", ".join(times), *notes]))


def _speed(over: str, ratios: Sequence[float]) -> Speed:
    known = [ratio for ratio in ratios if ratio]
    faster = sum(ratio > 1 for ratio in known) / max(1, len(known))
    labels = [f"{2 ** (edge / 2):.2g}" for edge in range(_LOWEST, _HIGHEST + 1)]
    bars = log_bars(known, math.log2, _LOWEST, [*labels, f"> {labels[-1]}"])
    return Speed(over, len(known), faster, median(known or [0.0]), bars)


def log_bars(
    values: Iterable[float], log: Callable[[float], float], lowest: int, labels: Sequence[str]
) -> tuple[Bar, ...]:
    """A histogram with one bar per label and half a unit of `log` per bar.

    The first bar ends at `lowest` half units. Values out of range count in the first or the last bar.
    """
    edges = (math.ceil(log(value) * 2) if value > 0 else lowest for value in values)
    counts = Counter(min(max(edge - lowest, 0), len(labels) - 1) for edge in edges)
    return tuple(Bar(label, counts[i]) for i, label in enumerate(labels))
