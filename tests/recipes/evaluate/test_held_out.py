"""Frozen sets of held-out problems, the search for copies, and the overlap with KernelBench."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kernelquarry.pipeline.dataset.shards import write_rows
from kernelquarry.pipeline.sandbox import Sandbox, SandboxSettings
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.records import Measures, Pair, SliceOrigin
from kernelquarry.recipes.evaluate.answers import Answer, Score
from kernelquarry.recipes.evaluate.held_out import SEEN, UNSEEN_COMBINATION, UNSEEN_OPERATOR, Seen, held_out, stratum
from kernelquarry.recipes.evaluate.nearest import nearest_rows, shares
from kernelquarry.recipes.evaluate.overlap import check_overlap
from kernelquarry.recipes.evaluate.problems import read_suite

SLICE = (SliceOrigin("m", "Net", "", (), 1),)

RELU = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x)
"""


def rows(pair: Pair, number: int, **changes: object) -> list[Pair]:
    return [
        replace(pair, id=f"pair_{place:04d}", python_code=f"{pair.python_code}# {place}\n", split="test", **changes)  # type: ignore[arg-type]
        for place in range(number)
    ]


def test_problems_are_drawn_from_each_stratum_of_operators(pairs: list[Pair]) -> None:
    calls = [1] * 80 + [2] * 3 + [7] * 40 + [100] * 40 + [-1] * 5
    measured = [
        replace(pair, measures=Measures(operators=number))
        for pair, number in zip(rows(pairs[0], len(calls)), calls, strict=True)
    ]
    chosen = held_out(measured, "modules", 43)
    counts = {name: sum(stratum(pair) == name for pair in chosen) for name in map(stratum, measured)}
    assert counts == {"1 operator": 12, "2 operators": 3, "5-8 operators": 12, "17 or more operators": 11, "": 5}
    assert held_out(measured[::-1], "modules", 43) == chosen
    fewer = [pair for pair in measured if pair not in chosen[:2]]
    assert len(set(chosen) & set(held_out(fewer, "modules", 43))) >= 40
    assert len(held_out(measured, "modules", 1000)) == len(calls)


def test_other_kinds_splits_and_kernels_of_a_module_are_left_out(pairs: list[Pair]) -> None:
    plain, train = rows(pairs[0], 4), [replace(pair, split="train") for pair in rows(pairs[0], 2)]
    again = [replace(plain[0], id="pair_9999")]
    long = [replace(plain[1], python_code="#" * 9000)]
    pieces = [replace(pair, slice_of=SLICE) for pair in rows(pairs[1], 3)]
    every = [*plain, *train, *again, *long, *pieces]
    assert held_out(every, "modules") == plain
    assert held_out(every, "slices") == pieces
    simple = Measures(operators=2, kernels=1, tokens=500)
    easy = [replace(pair, measures=simple) for pair in (plain[0], pieces[0])]
    harder = replace(simple, kernels=2), replace(simple, tokens=501)
    hard = [*(replace(pair, measures=each) for pair, each in zip(plain[1:], harder, strict=False)), plain[3]]
    assert {pair.python_code for pair in held_out([*easy, *hard], "easy")} == {pair.python_code for pair in easy}
    with pytest.raises(UserError, match="has no slices rows"):
        held_out(plain, "slices")


def test_labels_say_what_training_saw(pairs: list[Pair]) -> None:
    def pair(*operators: str, split: str = "train") -> Pair:
        return replace(pairs[0], operators=operators, split=split)

    seen = Seen.of(
        [pair("aten.relu", "aten.add.Tensor", "aten.view"), pair("aten.exp"), pair("aten.sin", split="test")]
    )
    assert seen.label(pair("aten.add.Scalar", "aten.permute")) == SEEN
    assert seen.label(pair("aten.relu", "aten.add")) == SEEN
    assert seen.label(pair("aten.relu", "aten.exp")) == UNSEEN_COMBINATION
    assert seen.label(pair("aten.relu", "aten.sin")) == UNSEEN_OPERATOR


def test_the_suites_are_read_with_their_labels(pairs: list[Pair], tmp_path: Path) -> None:
    train = [replace(pair, id=f"pair_t{place}", split="train") for place, pair in enumerate(pairs[:2])]
    found = rows(pairs[0], 2, measures=Measures(operators=2)) + [
        replace(pair, id=f"{pair.id}s", slice_of=SLICE) for pair in rows(pairs[1], 1)
    ]
    write_rows(tmp_path, Path("data/pairs"), Pair, [*train, *found])
    with Sandbox(SandboxSettings()) as sandbox:
        modules = read_suite("modules", str(tmp_path), (), 0, sandbox)
        (piece,) = read_suite("slices", str(tmp_path), (), 0, sandbox)
    assert (
        [(each.id, each.labels) for each in modules]
        == [  # type: ignore[union-attr]
            (pair.id, (SEEN, "2 operators")) for pair in found[:2]
        ]
    )
    assert piece.id == found[2].id


def test_the_nearest_training_row_of_a_right_answer_is_found(pairs: list[Pair]) -> None:
    kernel = "def f(x, y):\n    return x + y * 2 - x / 3\n"
    other = "class A:\n    def g(self, a):\n        return [a for _ in range(10) if a]\n"
    trained = [replace(pairs[0], id="a", triton_code=other), replace(pairs[0], id="b", triton_code=kernel)]
    texts = [kernel.replace("x / 3", "y"), f"{kernel}# the same", "no answer"]
    answers = [Answer("p", place, f"```python\n{text}\n```", 9, False) for place, text in enumerate(texts)]
    scores = [Score("p", place, "" if place < 2 else "no_code", "", True, "", 0.0, True, True) for place in range(3)]
    near, same = nearest_rows(answers, scores, trained)
    assert (same.pair, same.similarity, same.sample) == ("b", 1.0, 1)
    assert near.pair == "b" and 0.3 < near.similarity < 0.9
    assert shares([near, same]) == {"answers": 2, "median": (1 + near.similarity) / 2, "copied": 0.5}
    assert nearest_rows(answers, scores, []) == [] and shares([]) == {}


def test_rows_that_overlap_kernelbench_are_named(pairs: list[Pair], tmp_path: Path) -> None:
    clean = check_overlap(["1-019_ReLU", "3-050_ReLUSelfAttention"], pairs, [tmp_path])
    assert (clean.rows, clean.problems, clean.not_in_index) == (len(pairs), 2, ())
    assert not clean.overlapping and not clean.built_with_index
    named = {"benchmarks": [{"benchmark": "kernelbench", "commit": clean.index_commit}]}
    (tmp_path / "decontamination.json").write_text(json.dumps(named))
    code = RELU
    copied = check_overlap(["1-999_New"], [replace(pairs[0], python_code=code)], [tmp_path])
    assert copied.not_in_index == ("1-999_New",) and copied.built_with_index
    assert len(copied.overlapping) == 1 and "kernelbench/level1/19_ReLU" in copied.overlapping[0]
