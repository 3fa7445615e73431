"""From a judgement to a number: pure, and never less for an answer that came further.

    binary   1 if the rules AND all tests pass and kernels alone compute, else 0, as AutoTriton's
    graded   a share for each step of the way: loads, runs, right outputs' form, right, by kernels alone
    speed    as graded, and for each doubling over eager as much again as the recipe says

What is a hack came nowhere, and its class may be fined.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from kernelquarry.recipes.config import RewardSection

from .judge_answer import Judgement, Step


def reward(judgement: Judgement, section: RewardSection) -> float:
    """What an answer is paid."""
    step = judgement.step
    paid = float(step is Step.PURE) if section.kind == "binary" else _steps(section)[step]
    if section.kind == "speed" and step >= Step.CORRECT:
        paid += section.speed * max(0.0, math.log2(min(max(judgement.speedup, 1.0), section.speed_cap)))
    fines: Mapping[str, float] = section.penalties  # type: ignore[assignment]
    return paid - fines.get(judgement.hack, 0.0)


def _steps(section: RewardSection) -> Mapping[Step, float]:
    return {
        Step.NOTHING: 0.0,
        Step.LOADS: section.loads,
        Step.RUNS: section.runs,
        Step.CONTRACT: section.contract,
        Step.CORRECT: section.correct,
        Step.PURE: section.pure,
    }
