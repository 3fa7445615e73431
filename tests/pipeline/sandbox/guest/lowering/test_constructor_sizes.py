"""Sizes of a module's state that follow from integer arguments of its constructor."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from kernelquarry.pipeline.sandbox.guest.lowering.constructor_sizes import ConstructorSizes, constructor_sizes


class Linears(nn.Module):
    """Sizes that equal an argument, a multiple of one and a product of two."""

    def __init__(self, dim: int, hidden: int, heads: int = 2) -> None:
        super().__init__()
        self.dim, self.shape, self.heads = dim, (dim // 4, [hidden, 1]), heads
        self.up = nn.Linear(dim, 4 * dim)
        self.out = nn.Linear(dim, hidden + 1)
        self.mixed = nn.Parameter(torch.ones(dim * hidden))

    def forward(self, x: Tensor) -> Tensor:
        return self.out(x)


def words(sizes: ConstructorSizes | None) -> dict[Any, str]:
    assert sizes is not None
    return {(*key, base.name): base.word for key, base in sizes.bases.items()}


def test_sizes_that_change_alike_have_one_base() -> None:
    sizes = constructor_sizes(Linears(16, 8), [16, 8])
    assert words(sizes) == {
        ("up.weight", 1, "state1_1"): "dim",
        ("out.weight", 0, "state3_0"): "",
        ("mixed", 0, "state0_0"): "",
    }
    assert sizes is not None
    own = {key: base.size for key, base in sizes.bases.items()}
    assert {key: multiple.of(own) for key, multiple in sizes.sizes.items()} == {
        ("up.weight", 0): 64, ("up.weight", 1): 16, ("up.bias", 0): 64, ("out.weight", 0): 9, ("out.weight", 1): 16,
        ("out.bias", 0): 9, ("mixed", 0): 128,
    }  # fmt: skip
    assert {key[1:] for key in sizes.attributes} >= {("dim", 0), ("shape", 0), ("shape", 1)}


def test_attributes_become_expressions() -> None:
    module = Linears(16, 8)
    sizes = constructor_sizes(module, [16, 8])
    assert sizes is not None
    sizes.set_attributes(module, {key: base.size * 2 for key, base in sizes.bases.items()})
    assert (module.dim, module.shape, module.heads) == (32, (8, [17, 1]), 2)
    assert module.up.in_features == 32 and module.up.out_features == 128


def test_other_constructions_multiply_all_arguments() -> None:
    sizes = constructor_sizes(Linears(16, 8), [16, 8])
    assert sizes is not None
    assert [dict(one.arguments) for one in sizes.constructions] == [{0: 32, 1: 16}, {0: 48, 1: 24}]
    assert [sizes.base_sizes(one)["state0_0"] for one in sizes.constructions] == [512, 1152]


def test_fixed_arguments_stay() -> None:
    assert words(constructor_sizes(Linears(16, 8), [16, 8], {0})) == {("out.weight", 0, "state3_0"): ""}
    assert constructor_sizes(Linears(16, 8), [16, 8], {0, 1}) is None


class Kept(nn.Module):
    """A size that follows from an argument, and an attribute that is set by the test."""

    def __init__(self, dim: int, make: Any = None) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.made = make(dim) if make else 0


@pytest.mark.parametrize("make", [lambda n: n**-0.25, lambda n: n * n, lambda n: n > 20, str])
def test_an_argument_stays_if_an_attribute_follows_from_it_otherwise(make: Any) -> None:
    assert constructor_sizes(Kept(16), [16]) is not None
    assert constructor_sizes(Kept(16, make), [16, make]) is None


@pytest.mark.parametrize("make", [lambda n: n**-0.5, lambda n: 1 / math.sqrt(n // 4), lambda n: 3 * math.sqrt(n)])
def test_attributes_may_be_roots_of_an_argument(make: Any) -> None:
    sizes = constructor_sizes(Kept(16, make), [16, make])
    assert sizes is not None
    (root,) = sizes.attributes.values()
    assert math.isclose(root.of({("weight", 0): 64}), make(64))


class Layers(nn.Module):
    """The number of tensors follows from `count`, and only some numbers of `groups` are accepted."""

    def __init__(self, count: int, channels: int, groups: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.GroupNorm(groups, channels) for _ in range(count))


def test_arguments_that_do_not_change_sizes_alone_stay() -> None:
    sizes = constructor_sizes(Layers(2, 8, 4), [2, 8, 4])
    assert words(sizes) == {("layers.0.weight", 0, "state0_0"): "channels"}
    assert sizes is not None and [dict(one.arguments) for one in sizes.constructions] == [{1: 16}, {1: 24}]
