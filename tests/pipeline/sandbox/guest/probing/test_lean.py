"""Smaller numbers for constructors, found by what they do."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from torch import nn

from kernelquarry.pipeline.sandbox.guest.probing.lean import Burden, leanest


def burden(texts: Mapping[str, str]) -> Burden | None:
    """Of `towers` towers with a layer for each item of `plan`; `heads` divide the width and cost nothing."""
    values = {name: ast.literal_eval(text) for name, text in texts.items()}
    if values["width"] % values["heads"]:
        return None
    return Burden(values["towers"] * sum(values["plan"]), values["width"] ** 2)


def test_what_makes_it_lighter_gets_smaller() -> None:
    texts = {
        "towers": "4",
        "plan": "(3, 4)",
        "heads": "8",
        "width": "512",
        "act": "'relu'",
        "rate": "0.5",
        "on": "True",
    }
    assert leanest(texts, burden) == {"towers": "1", "plan": "(1, 1)", "width": "16"}


def test_what_cannot_be_constructed_is_not_taken() -> None:
    texts = {"towers": "1", "plan": "[64, 128]", "heads": "24", "width": "48"}
    assert leanest(texts, burden) == {"plan": "[16, 32]"}


def test_the_burden_of_layers() -> None:
    assert Burden.of(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Conv1d(3, 4, 1))) == Burden(2, 6 + 3 + 12 + 4)
