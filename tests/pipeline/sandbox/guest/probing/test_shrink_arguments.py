"""Smaller constructor arguments, found by measuring the module."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from torch import nn

from kernelquarry.pipeline.sandbox.guest.probing.shrink_arguments import ModuleSize, shrink_arguments


def module_size(texts: Mapping[str, str]) -> ModuleSize | None:
    """Size of `towers` towers with the layers of `plan`. `heads` must divide the width and changes nothing."""
    values = {name: ast.literal_eval(text) for name, text in texts.items()}
    if values["width"] % values["heads"]:
        return None
    return ModuleSize(values["towers"] * sum(values["plan"]), values["width"] ** 2)


def test_arguments_shrink_where_the_module_gets_smaller() -> None:
    texts = {
        "towers": "4",
        "plan": "(3, 4)",
        "heads": "8",
        "width": "512",
        "act": "'relu'",
        "rate": "0.5",
        "on": "True",
    }
    assert shrink_arguments(texts, module_size) == {"towers": "1", "plan": "(1, 1)", "width": "16"}


def test_a_number_that_does_not_help_is_not_tried_at_larger_values() -> None:
    tried: list[str] = []

    def measure(texts: Mapping[str, str]) -> ModuleSize | None:
        tried.append(texts["kernel"])
        return None if texts["kernel"] == "1" else ModuleSize(2, 100)

    assert shrink_arguments({"kernel": "7"}, measure) == {}
    assert tried == ["7", "1", "2"]


def test_arguments_that_raise_are_not_used() -> None:
    texts = {"towers": "1", "plan": "[64, 128]", "heads": "24", "width": "48"}
    assert shrink_arguments(texts, module_size) == {"plan": "[16, 32]"}


def test_the_burden_of_layers() -> None:
    assert ModuleSize.of(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Conv1d(3, 4, 1))) == ModuleSize(2, 6 + 3 + 12 + 4)
