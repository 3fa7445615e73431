"""The reward never falls as an answer reaches further steps."""

from __future__ import annotations

import pytest
from factories import make_verdict
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Purity
from kernelquarry.recipes.config import RewardSection
from kernelquarry.recipes.judge.reward import reward
from kernelquarry.transforms.verify.answer import HACKS, Judgement, Step
from kernelquarry.transforms.verify.read_source import source_rejection

VERIFY = [reason for reason in Reason if reason.stage in ("verify", "guest")]
SHARES = st.lists(st.floats(0, 1), min_size=5, max_size=5).map(sorted)
PENALTIES = st.dictionaries(st.sampled_from(sorted(HACKS.values())), st.floats(0, 2))


@st.composite
def sections(draw: st.DrawFn) -> RewardSection:
    names = ("loads", "runs", "contract", "correct", "pure")
    return RewardSection(
        kind=draw(st.sampled_from(["binary", "graded", "speed"])),
        speed=draw(st.floats(0, 3)),
        penalties=draw(PENALTIES),
        **dict(zip(names, draw(SHARES), strict=True)),
    )


@st.composite
def judgements(draw: st.DrawFn) -> Judgement:
    if draw(st.booleans()):
        purity = draw(st.sampled_from(list(Purity)))
        return Judgement("code", verdict=make_verdict(), purity=purity, speedup=draw(st.floats(0, 50)))
    return Judgement("code", reason=draw(st.sampled_from([*VERIFY, None])))


@given(judgements(), judgements(), sections())
def test_a_further_step_at_the_same_speed_never_gets_less(
    one: Judgement, other: Judgement, section: RewardSection
) -> None:
    if one.step < other.step and one.speedup <= other.speedup and not other.hack:
        assert reward(one, section) <= reward(other, section)


@given(judgements(), sections(), st.floats(0, 50), st.floats(0, 50))
def test_a_faster_answer_never_gets_less(
    judgement: Judgement, section: RewardSection, one: float, other: float
) -> None:
    rewards = [
        reward(Judgement("code", verdict=make_verdict(), purity=judgement.purity, speedup=speed), section)
        for speed in sorted((one, other))
    ]
    assert rewards[0] <= rewards[1]


@given(sections(), st.sampled_from(VERIFY))
def test_a_hack_gets_nothing_less_its_penalty(section: RewardSection, reason: Reason) -> None:
    judgement = Judgement("code", reason=reason)
    if reason in HACKS:
        assert reward(judgement, section) == -section.penalties.get(HACKS[reason], 0.0)  # type: ignore[call-overload]
    else:
        assert reward(judgement, section) >= 0.0


def test_rewards_of_each_kind() -> None:
    right = Judgement("code", verdict=make_verdict(), speedup=4.0)
    mixed = Judgement("code", verdict=make_verdict(), purity=Purity.MIXED)
    wrong = Judgement("code", reason=Reason.WRONG_VALUES)
    rewards = {
        kind: [reward(j, RewardSection(kind=kind)) for j in (right, mixed, wrong, Judgement(""))]
        for kind in ("binary", "graded", "speed")
    }
    assert rewards["binary"] == [1.0, 0.0, 0.0, 0.0]
    assert rewards["graded"] == [1.0, 0.8, 0.25, 0.0]
    assert rewards["speed"] == [3.0, 0.8, 0.25, 0.0]


def test_falling_step_values_are_rejected() -> None:
    with pytest.raises(ValidationError, match="must not fall"):
        RewardSection(loads=0.5, runs=0.2)


def test_every_step_is_reached() -> None:
    reached = {Judgement("code", reason=reason).step for reason in VERIFY} | {Step.CORRECT, Step.PURE}
    assert reached == set(Step)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("def (", Reason.NO_CODE),
        ("import torch\n", Reason.NO_CODE),
        ("import os\nclass ModelNew:\n    def forward(self, x):\n        return x\n", Reason.OUTSIDE_LANGUAGE),
        ("class ModelNew:\n    def forward(self, x):\n        return x\n", Reason.OUTPUT_NOT_FROM_KERNEL),
    ],
)
def test_answers_that_their_source_rejects_are_not_run(code: str, reason: Reason) -> None:
    refused = source_rejection(code)
    assert refused is not None and refused[0] is reason and refused[1]
