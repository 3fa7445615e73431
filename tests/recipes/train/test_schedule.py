"""The order of training rows, and their packing."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from kernelquarry.pipeline.schema.records import Measures, Pair, SliceOrigin
from kernelquarry.recipes.config import PhaseSection, SftSection
from kernelquarry.recipes.train.schedule import kind_of, pack, schedule


def section(**settings: object) -> SftSection:
    return SftSection.model_validate({"learning_rate": 1e-3, "batch": 1, **settings})


def with_operators(pairs: list[Pair], *numbers: int) -> list[Pair]:
    return [replace(pairs[0], measures=Measures(operators=number)) for number in numbers]


def test_easy_rows_come_first_and_all_rows_are_in_the_mixture(pairs: list[Pair]) -> None:
    rows = with_operators(pairs, 9, 1, 2, -1)
    order = schedule(rows, section(phases=({"epochs": 2, "operators": 2}, {"epochs": 1})))
    assert Counter(order[:4]) == {1: 2, 2: 2}  # -1 is not measured, so the row is not known to be easy
    assert sorted(order[4:]) == [0, 1, 2, 3]
    assert sorted(order[:2]) == sorted(order[2:4]) == [1, 2]  # each pass is whole


def test_without_phases_all_rows_are_passed_over(pairs: list[Pair]) -> None:
    order = schedule(with_operators(pairs, *range(10)), section(epochs=1.5))
    assert sorted(order[:10]) == list(range(10)) and len(order) == 15
    assert order != schedule(with_operators(pairs, *range(10)), section(epochs=1.5, seed=1))


def test_weights_set_how_often_a_kind_is_in_a_pass(pairs: list[Pair]) -> None:
    piece = replace(pairs[0], slice_of=(SliceOrigin("m", "Net", "", (), 1),))
    assert (kind_of(piece), kind_of(pairs[0])) == ("slices", "modules")
    rows = [piece] * 400 + [pairs[0]] * 100
    counts = Counter(kind_of(rows[index]) for index in schedule(rows, section(weights={"slices": 0.25, "modules": 2})))
    assert counts["modules"] == 200 and 70 < counts["slices"] < 130
    assert not schedule([piece], section(weights={"slices": 0}))


def test_a_phase_draws_so_many_rows_of_the_same_operators_in_each_pass(pairs: list[Pair]) -> None:
    rows = [replace(pairs[0], operators=names) for names in (("add", "mul"), ("mul", "add"), ("add",), ("add", "mul"))]
    order = schedule(rows, section(phases=({"epochs": 20, "alike": 1},)))
    passes = [order[start : start + 2] for start in range(0, 40, 2)]
    assert len(order) == 40 and all(2 in each for each in passes)
    assert {index for each in passes for index in each} == {0, 1, 2, 3}
    assert len(schedule(rows, section(phases=({"epochs": 1, "alike": 2},)))) == 3


@pytest.mark.parametrize("room", [100, 130])
def test_packing_cuts_nothing_and_keeps_the_order(room: int) -> None:
    draw = random.Random(0)
    lengths = [draw.randint(1, 100) for _ in range(500)]
    packed = list(pack(lengths, room))
    assert sorted(index for each in packed for index in each) == list(range(500))
    assert all(sum(lengths[index] for index in each) <= room for each in packed)
    assert sum(lengths) > 0.9 * room * len(packed)
    places = {index: place for place, each in enumerate(packed) for index in each}
    starts = [min(each) for each in packed]
    assert starts == sorted(starts)
    assert all(abs(places[index] - index * len(packed) / 500) < 40 for index in range(500))


def test_a_phase_needs_an_end() -> None:
    with pytest.raises(ValueError, match="epochs"):
        PhaseSection.model_validate({"operators": 1})
