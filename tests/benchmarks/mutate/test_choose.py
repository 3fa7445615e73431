"""The choice of mutants is even over classes, rows and operators, deterministic, and a prefix of larger choices."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from mutate import Fault, Mutant, choose, find_mutants
from subjects import RICH, copy, rich

from kernelquarry.pipeline.schema.records import Pair


@pytest.fixture(scope="module")
def rows() -> list[Pair]:
    renamed = [
        replace(rich(), id=f"pair_{name}", triton_code=RICH.replace("norm_kernel", f"{name}_kernel"))
        for name in ("first", "second")
    ]
    return [copy(), *renamed]


@pytest.fixture(scope="module")
def chosen(rows: list[Pair]) -> list[Mutant]:
    return choose(rows, 60, seed=3)


def test_classes_rows_and_operators_take_turns(chosen: list[Mutant], rows: list[Pair]) -> None:
    counts = Counter(mutant.fault for mutant in chosen)
    assert set(counts) == set(Fault) and max(counts.values()) - min(counts.values()) <= 1
    of_a_class = [mutant for mutant in chosen if mutant.fault is Fault.INDEXING]
    by_row = Counter(mutant.pair for mutant in of_a_class)
    assert set(by_row) == {row.id for row in rows} and max(by_row.values()) - min(by_row.values()) <= 1
    operators = [mutant.operator for mutant in of_a_class if mutant.pair == "pair_first"]
    assert len(set(operators)) == len(operators)


def test_all_are_distinct_mutants_of_their_row(chosen: list[Mutant], rows: list[Pair]) -> None:
    assert len({mutant.id for mutant in chosen}) == 60
    for row in rows:
        codes = {mutant.code for mutant in find_mutants(row)}
        assert all(mutant.code in codes for mutant in chosen if mutant.pair == row.id)


def test_the_seed_determines_the_choice(chosen: list[Mutant], rows: list[Pair]) -> None:
    assert choose(rows, 60, seed=3) == chosen
    assert choose(rows, 60, seed=4) != chosen
    assert choose(rows, 25, seed=3) == chosen[:25]


def test_all_mutants_are_chosen_if_there_are_too_few() -> None:
    assert {mutant.code for mutant in choose([copy()], 1000, seed=0)} == {m.code for m in find_mutants(copy())}
