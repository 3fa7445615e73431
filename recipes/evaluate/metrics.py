"""Counts of answers to numbers with their uncertainty. Pure."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import comb
from statistics import fmean

PASS_AT = (1, 5, 10, 20)
FAST_P = (0.0, 0.8, 1.0, 1.5, 2.0)
_DRAWS = 2000  # of the bootstrap


@dataclass(frozen=True, slots=True)
class Estimate:
    """A share and its 95 % interval, over problems."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{100 * self.value:.1f} ({100 * self.low:.1f}-{100 * self.high:.1f})"


def pass_at(samples: int, right: int, k: int) -> float:
    """The unbiased estimate of the chance that one of `k` answers is right, from `samples` of which `right` are.

    Raises:
        ValueError: there are fewer than `k` samples.
    """
    if k > samples:
        raise ValueError(f"pass@{k} of {samples} samples")
    return 1.0 - comb(samples - right, k) / comb(samples, k)


def estimate(values: Sequence[float]) -> Estimate:
    """The mean over problems, with a bootstrap's interval, the same each time. Raises: ValueError if there are none."""
    if not values:
        raise ValueError("no problems")
    draw = random.Random(0)
    means = sorted(fmean(draw.choices(values, k=len(values))) for _ in range(_DRAWS))
    return Estimate(fmean(values), means[int(0.025 * _DRAWS)], means[int(0.975 * _DRAWS) - 1])


def rates(flags: Sequence[Sequence[bool]]) -> dict[str, Estimate]:
    """pass@k of problems, each with a flag for each of its answers, for those k that all have samples for."""
    least = min(map(len, flags), default=0)
    return {
        f"pass@{k}": estimate([pass_at(len(found), sum(found), k) for found in flags]) for k in PASS_AT if k <= least
    }


def mean_of(answers: Sequence[Sequence[bool]]) -> Estimate:
    """The share of answers with the flag, over problems."""
    return estimate([fmean(found) for found in answers])


def fast_p(right: Sequence[Sequence[bool]], speedups: Sequence[Sequence[float]]) -> dict[str, Estimate]:
    """The share of first answers that are right and more than p times as fast as eager."""
    at: Callable[[float], list[float]] = lambda p: [  # noqa: E731
        float(found[0] and (fast[0] > p or p == 0.0)) for found, fast in zip(right, speedups, strict=True)
    ]
    return {f"fast_{p:g}": estimate(at(p)) for p in FAST_P}
