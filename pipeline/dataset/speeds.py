"""How fast a set of pairs is beside eager and `torch.compile`, in figures."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from kernelquarry.pipeline.schema.records import Pair, Timing

_OCTAVES = (-2, 3)  # of speedups: the first bar has all below a quarter, the last all above eight
_BARS_PER_OCTAVE = 2


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of a histogram."""

    label: str
    count: int


@dataclass(frozen=True, slots=True)
class Speed:
    """Of the candidates over one other contender, suspect timings left out."""

    over: str
    pairs: int
    faster: float  # share of them whose candidate is faster: fast_1
    median: float  # speedup
    bars: tuple[Bar, ...]  # of speedups, log scale


@dataclass(frozen=True, slots=True)
class Speeds:
    timed: int  # pairs with times
    enlarged: int  # of them, those timed on a call that is larger than the row's own
    suspects: int  # of them, those whose numbers do not fit together
    over: tuple[Speed, ...]


def speeds(pairs: Sequence[Pair]) -> Speeds | None:
    """None if none of them has times."""
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


def describe(timing: Timing) -> str:
    """One line on a pair's timing."""
    times = [f"{timed.name} {timed.median_us:,.1f} µs" for timed in timing.contenders]
    notes = [timing.left_out, f"suspect: {timing.suspect}" if timing.suspect else ""]
    return "; ".join(filter(None, [", ".join(times), *notes]))


def _speed(over: str, ratios: Sequence[float]) -> Speed:
    known = [ratio for ratio in ratios if ratio]
    faster = sum(ratio > 1 for ratio in known) / max(1, len(known))
    return Speed(over, len(known), faster, median(known or [0.0]), _bars(known))


def _bars(ratios: Sequence[float]) -> tuple[Bar, ...]:
    first, last = (octave * _BARS_PER_OCTAVE for octave in _OCTAVES)
    places = (math.ceil(math.log2(ratio) * _BARS_PER_OCTAVE) for ratio in ratios)
    found = Counter(min(max(place, first), last + 1) for place in places)
    labels = [f"{2 ** (place / _BARS_PER_OCTAVE):.2g}" for place in range(first, last + 1)]
    return tuple(Bar(label, found[first + i]) for i, label in enumerate([*labels, f"> {labels[-1]}"]))
