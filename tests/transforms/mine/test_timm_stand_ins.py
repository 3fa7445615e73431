"""The definitions that replace timm's small layers compute the same."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from kernelquarry.transforms.mine.allowed import allowed
from kernelquarry.transforms.mine.timm_stand_ins import UnsupportedImport, replace_timm_imports

NAMES = (
    "DropPath",
    "LayerNorm2d",
    "Mlp",
    "drop_path",
    "to_1tuple",
    "to_2tuple",
    "to_3tuple",
    "to_4tuple",
    "trunc_normal_",
)


def defined(name: str, alias: str = "it") -> Any:
    lines, definitions = replace_timm_imports({f"from timm.layers import {name} as {alias}"})
    namespace: dict[str, Any] = {}
    exec("\n".join([*sorted(lines), *definitions]), namespace)
    return namespace[alias]


@pytest.mark.parametrize("name", NAMES)
def test_allowed_names_are_defined(name: str) -> None:
    assert allowed(f"timm.layers.{name}") and allowed(f"timm.models.layers.some.{name}")
    assert callable(defined(name))


@pytest.mark.parametrize("dotted", ["timm", "timm.layers", "timm.layers.create_attn", "timm.models.vit.Mlp"])
def test_other_names_of_timm_are_not_allowed(dotted: str) -> None:
    assert not allowed(dotted)


def test_tuples() -> None:
    pair = defined("to_2tuple")
    assert (pair(3), pair([1, 2]), pair("same")) == ((3, 3), (1, 2), ("same", "same"))


@pytest.mark.parametrize("name", ["DropPath", "drop_path"])
def test_whole_samples_are_dropped_while_training(name: str) -> None:
    x = torch.ones(64, 3, 2)
    drop = defined(name)
    training, evaluating = (drop(0.5), drop(0.5).eval()) if name == "DropPath" else (lambda x: drop(x, 0.5, True), drop)
    assert torch.equal(evaluating(x), x)
    dropped = training(x)
    assert {value.item() for value in dropped.unique()} == {0.0, 2.0}
    assert torch.equal(dropped.amin((1, 2)), dropped.amax((1, 2)))


def test_norm_of_channels() -> None:
    x = torch.randn(2, 5, 3, 4)
    norm = torch.nn.LayerNorm(5, eps=1e-6)
    torch.testing.assert_close(defined("LayerNorm2d")(5)(x), norm(x.movedim(1, -1)).movedim(-1, 1))


def test_a_network_of_two_layers() -> None:
    mlp = defined("Mlp")(4, 8, norm_layer=torch.nn.LayerNorm, bias=(True, False), drop=0.1).eval()
    x = torch.randn(3, 4)
    torch.testing.assert_close(
        mlp(x), mlp.fc2(torch.nn.functional.layer_norm(torch.nn.functional.gelu(mlp.fc1(x)), (8,)))
    )
    assert mlp.fc2.bias is None and mlp(x).shape == (3, 4)


def test_import_of_the_whole_package_is_rejected() -> None:
    with pytest.raises(UnsupportedImport, match="timm, by its own name"):
        replace_timm_imports({"import timm"})


def test_other_imports_stay() -> None:
    assert replace_timm_imports({"import math", "from torch import nn"}) == (
        {"import math", "from torch import nn"},
        [],
    )
