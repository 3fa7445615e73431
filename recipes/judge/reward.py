"""The reward of a judgement. An answer that reaches a further step never gets less.

    binary   1 if the source AND all trials pass and kernels alone compute, else 0, as AutoTriton's
    graded   a value for each step: loads, runs, outputs of the right form, right outputs, computed by kernels alone
    speed    as graded, plus the recipe's bonus for each doubling of the speed over eager

A hack gets the value of no step, less a penalty for its class.
"""

from __future__ import annotations

import math
from typing import Protocol

from kernelquarry.recipes.config import RewardSection

from .judge_answer import Step


class Judged(Protocol):
    """A judgement or a verdict on an answer."""

    @property
    def step(self) -> Step: ...

    @property
    def hack(self) -> str: ...

    @property
    def speedup(self) -> float: ...


def reward(judgement: Judged, section: RewardSection) -> float:
    step = judgement.step
    graded = {
        Step.NOTHING: 0.0,
        Step.LOADS: section.loads,
        Step.RUNS: section.runs,
        Step.CONTRACT: section.contract,
        Step.CORRECT: section.correct,
        Step.PURE: section.pure,
    }
    value = float(step is Step.PURE) if section.kind == "binary" else graded[step]
    if section.kind == "speed" and step >= Step.CORRECT:
        value += section.speed * max(0.0, math.log2(min(max(judgement.speedup, 1.0), section.speed_cap)))
    return value - sum(penalty for hack, penalty in section.penalties.items() if hack == judgement.hack)
