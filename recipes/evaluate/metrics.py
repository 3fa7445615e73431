"""Metrics of an evaluation with confidence intervals: pass@k, fast_p, and shares of answers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from statistics import fmean

PASS_AT = (1, 5, 10, 20)
FAST_P = (0.0, 0.8, 1.0, 1.5, 2.0)
_RESAMPLES = 2000  # of the bootstrap


@dataclass(frozen=True, slots=True)
class Estimate:
    """A share and its 95 % interval over problems."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{100 * self.value:.1f} ({100 * self.low:.1f}-{100 * self.high:.1f})"


def pass_at(samples: int, right: int, k: int) -> float:
    """Unbiased estimate of the probability that one of `k` answers is right, if `right` of `samples` are.

    Raises:
        ValueError: there are fewer than `k` samples.
    """
    if k > samples:
        raise ValueError(f"pass@{k} of {samples} samples")
    return 1.0 - comb(samples - right, k) / comb(samples, k)


def estimate(values: Sequence[float]) -> Estimate:
    """Mean over problems with a bootstrap interval of a fixed seed. Raises: ValueError: there are no values."""
    if not values:
        raise ValueError("no problems")
    draw = random.Random(0)
    means = sorted(fmean(draw.choices(values, k=len(values))) for _ in range(_RESAMPLES))
    return Estimate(fmean(values), means[int(0.025 * _RESAMPLES)], means[int(0.975 * _RESAMPLES) - 1])


def pass_rates(flags: Sequence[Sequence[bool]]) -> dict[str, Estimate]:
    """pass@k from one flag for each answer to each problem, for every k that all problems have samples for."""
    fewest = min(map(len, flags), default=0)
    return {f"pass@{k}": estimate([pass_at(len(each), sum(each), k) for each in flags]) for k in PASS_AT if k <= fewest}


def mean_rate(flags: Sequence[Sequence[bool]]) -> Estimate:
    """Share of answers with the flag, averaged over problems."""
    return estimate([fmean(each) for each in flags])


def fast_p(right: Sequence[Sequence[bool]], speedups: Sequence[Sequence[float]]) -> dict[str, Estimate]:
    """Share of problems whose first answer is right and has a speedup over eager of more than p; p = 0: any speed."""
    firsts = [(flags[0], speeds[0]) for flags, speeds in zip(right, speedups, strict=True)]
    return {
        f"fast_{p:g}": estimate([float(is_right and (speed > p or p == 0.0)) for is_right, speed in firsts])
        for p in FAST_P
    }
