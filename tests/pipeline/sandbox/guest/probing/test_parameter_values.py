"""Candidates for the value of a parameter, best first."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from kernelquarry.pipeline.sandbox.guest.probing.parameter_usage import Usage
from kernelquarry.pipeline.sandbox.guest.probing.parameter_values import (
    STYLES,
    Parameter,
    candidates,
    config,
    smaller,
    with_attribute,
)

STYLE = STYLES[0]

FIRST: dict[str, tuple[Parameter, str]] = {
    "by its name": (Parameter("in_channels"), "16"),
    "another width": (Parameter("out_channels"), "48"),
    "a default": (Parameter("dim", default="24", value=24), "24"),
    "a string it is compared with": (Parameter("dim", usage=Usage(strings=["same", "valid"])), "'same'"),
    "a key of a table": (Parameter("which", usage=Usage(strings=["gelu", "relu"])), "'gelu'"),
    "over a bound": (Parameter("depth", usage=Usage(bounds=[100])), "2"),
    "an int": (Parameter("scale", annotation="int"), "2"),
    "a float": (Parameter("scale", annotation="float"), "2"),
    "a rate": (Parameter("rate", annotation="float"), "0.5"),
    "a bool": (Parameter("wide", annotation="bool"), "False"),
    "an optional int": (Parameter("dim", annotation="typing.Optional[int]"), "32"),
    "a union": (Parameter("dim", annotation="int | None"), "32"),
    "a text annotation": (Parameter("dim", annotation="'list[int]'"), "[16, 32]"),
    "a literal": (Parameter("mode", annotation="Literal['a', 'b']"), "'a'"),
    "a list": (Parameter("dims", annotation="list[int]"), "[16, 32]"),
    "a tuple of three": (Parameter("dims", annotation="tuple[int, int, int]"), "[16, 32, 48]"),
    "a list of lists": (Parameter("dims", annotation="list[list[int]]"), "[[32, 48], [64, 80]]"),
    "a list of names": (Parameter("names", annotation="list[str]"), "['a', 'b']"),
    "a module": (Parameter("inside", annotation="nn.Module"), "nn.GELU()"),
    "a layer": (Parameter("inside", annotation="torch.nn.LayerNorm"), "nn.LayerNorm(32)"),
    "a row of layers": (Parameter("row", annotation="nn.Sequential"), "nn.Sequential(nn.Linear(32, 32), nn.ReLU())"),
    "with attributes of a layer": (
        Parameter("source", usage=Usage(attributes={"groups", "weight"})),
        "nn.Conv2d(32, 32, 3, padding=1)",
    ),
    "a factory": (Parameter("make", annotation="Callable[..., nn.Module]", usage=Usage(called=True)), "nn.ReLU"),
    "iterated": (Parameter("dims", usage=Usage(sequence=True)), "[16, 32]"),
    "unpacked into three": (Parameter("dims", usage=Usage(sequence=True, items=3)), "[16, 32, 48]"),
    "iterated twice": (Parameter("depths", usage=Usage(sequence=True, nested=True)), "[[2, 2], [2, 2]]"),
    "a number after all": (Parameter("dim", usage=Usage(items=2, number=True)), "32"),
    "called": (Parameter("act_layer", usage=Usage(called=True)), "nn.ReLU"),
    "with attributes": (
        Parameter("config", usage=Usage(attributes={"hidden_size", "act"})),
        "type('Config', (), {'act': 'relu', 'hidden_size': 64})()",
    ),
    "with methods of strings": (Parameter("mode", usage=Usage(attributes={"lower"})), "'mean'"),
}  # fmt: skip


@pytest.mark.parametrize("about", FIRST)
def test_first_candidate(about: str) -> None:
    parameter, expected = FIRST[about]
    assert candidates(parameter, STYLE)[0] == expected


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("about", FIRST)
def test_all_candidates_are_values(about: str, style: Any) -> None:
    texts = candidates(FIRST[about][0], style, ("Block",))
    assert len(texts) == len(set(texts)) > 15
    for text in texts:
        eval(text, {"nn": nn, "torch": torch, "Block": nn.Identity})


def test_classes_of_the_file_come_before_instances() -> None:
    texts = candidates(Parameter("block", usage=Usage(called=True)), STYLE, ("Basic", "Bottleneck"))
    assert texts.index("Basic") < texts.index("Bottleneck") < texts.index("nn.Identity()")


def test_an_attribute_is_added_to_a_configuration() -> None:
    empty = config({})
    once = with_attribute(empty, "dim")
    assert once is not None
    twice = with_attribute(once, "num_heads")
    assert twice is not None
    settings = eval(STYLE.expand(twice))
    assert (settings.dim, settings.num_heads) == (32, 4)
    assert with_attribute("[32]", "dim") is None


SMALLER: list[tuple[str, Any, str | None]] = [
    ("dim", 768, "32"),
    ("dim", 48, None),
    ("depth", 12, "2"),
    ("depth", 1, None),
    ("num_heads", 12, "4"),
    ("dim_head", 64, "8"),
    ("image_size", 224, "32"),
    ("patch_size", 16, "4"),
    ("num_classes", 1000, "10"),
    ("vocab_size", 30522, "50"),
    ("inplace", True, "False"),
    ("bias", True, None),
    ("eps", 1e-5, None),
    ("channels", [64, 128, 256, 128], "[16, 32, 48, 32]"),
    ("channels", (64, 128), "(16, 32)"),
    ("channels", [], None),
    ("depths", (3, 4, 6, 3), "(1, 1, 1, 1)"),
    ("dim_mults", (1, 2, 4, 8), "(1, 2)"),
    ("kernel_size", (7, 7), None),
    ("mode", "bilinear", None),
]


@pytest.mark.parametrize(("name", "value", "expected"), SMALLER)
def test_smaller(name: str, value: Any, expected: str | None) -> None:
    assert smaller(Parameter(name, required=False, default=repr(value), value=value), STYLE) == expected


def test_a_required_parameter_has_no_smaller_default() -> None:
    assert smaller(Parameter("dim", value=768), STYLE) is None
