"""First guesses at a call, from names, annotations, uses and layers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from kernelquarry.pipeline.sandbox.guest.probing.first_guesses import constructor_sizes, first_guesses
from kernelquarry.pipeline.sandbox.guest.probing.guarded_call import Unfit
from kernelquarry.pipeline.sandbox.guest.probing.guess import Guess
from kernelquarry.pipeline.sandbox.guest.probing.layer_hints import layer_hints
from kernelquarry.pipeline.sandbox.guest.probing.parameter_usage import Usage
from kernelquarry.pipeline.sandbox.guest.probing.parameters import Input, forward_inputs


class Joined(nn.Module):
    """b c h w -> b (c h w)"""


class Turned(nn.Module):
    """... c -> c ..."""


LAYERS: list[tuple[nn.Module, tuple[int, ...], int, int]] = [  # rank of the best layouts, features, tokens
    (nn.Conv1d(4, 2, 3), (3,), 4, 0),
    (nn.Conv2d(4, 2, 3), (4,), 4, 0),
    (nn.ConvTranspose3d(4, 2, 3), (5,), 4, 0),
    (nn.BatchNorm2d(4), (4,), 4, 0),
    (nn.InstanceNorm1d(4), (3,), 4, 0),
    (nn.LazyConv2d(4, 3), (4,), 0, 0),
    (nn.Linear(4, 2), (3, 2), 4, 0),
    (nn.LayerNorm((2, 4)), (3, 2), 4, 0),
    (nn.GroupNorm(2, 4), (4, 3), 4, 0),
    (nn.Embedding(9, 4), (2,), 0, 9),
    (nn.LSTM(4, 2), (3,), 4, 0),
    (nn.GRUCell(4, 2), (2,), 4, 0),
    (nn.MultiheadAttention(4, 2), (3,), 4, 0),
    (nn.PixelShuffle(2), (4,), 0, 0),
    (nn.MaxPool3d(2), (5,), 0, 0),
    (Joined(), (4,), 0, 0),
]


@pytest.mark.parametrize(("layer", "ranks", "features", "tokens"), LAYERS)
def test_layer_hints(layer: nn.Module, ranks: tuple[int, ...], features: int, tokens: int) -> None:
    found = next(layer_hints(nn.Sequential(layer)))
    assert (tuple(map(len, found.layouts)), found.features, found.tokens) == (ranks, features, tokens)


def test_layers_without_a_hint() -> None:
    assert list(layer_hints(nn.Sequential(nn.ReLU(), nn.Identity(), Turned()))) == []


def test_constructor_sizes() -> None:
    assert constructor_sizes({"image_size": "32", "dim": "64"}) == {"H": 32, "W": 32, "C": 64}
    assert constructor_sizes({"img_size": "(16, 24)", "num_frames": "8"}) == {"H": 16, "W": 24, "T": 8}
    assert constructor_sizes({"seq_len": "24", "image_size": "None"}) == {"L": 24}
    assert constructor_sizes({"window_size": "4"}) == {"L": 16} and constructor_sizes({"window_size": "(2, 4)"}) == {
        "L": 8
    }
    assert constructor_sizes({"image_size": "4096"}) == {}


FLOATS = ("float32", (2, 16, 12, 20))
# the inputs of forward, a layer -> the tensors and numbers of the first guess
FIRST: list[tuple[list[Input], nn.Module, list[Any]]] = [
    ([Input("x", True, Usage())], nn.Identity(), [FLOATS]),
    ([Input("x", True, Usage())], nn.Linear(4, 2), [("float32", (2, 24, 4))]),
    ([Input("x", True, Usage(ranks=[2]))], nn.Linear(4, 2), [("float32", (2, 4))]),
    ([Input("x", True, Usage(ranks=[5]))], nn.Linear(4, 2), [("float32", (2, 4, 6, 12, 20))]),
    ([Input("x", True, Usage())], nn.Embedding(9, 4), [("int64", (2, 24))]),
    ([Input("token_ids", True, Usage())], nn.Embedding(9, 4), [("int64", (2, 24))]),
    ([Input("x", True, Usage()), Input("attention_mask", True, Usage())], nn.Linear(4, 2),
     [("float32", (2, 24, 4)), ("bool", (2, 24))]),
    ([Input("x", True, Usage()), Input("timesteps", True, Usage())], nn.Identity(), [FLOATS, ("float32", (2,))]),
    ([Input("x", True, Usage()), Input("lengths", True, Usage())], nn.GRU(4, 2),
     [("float32", (2, 24, 4)), ("int64", (2,))]),
    ([Input("x", True, Usage()), Input("edge_index", True, Usage(sequence=True, items=2))], nn.Linear(4, 2),
     [("float32", (24, 4)), ("int64", (2, 40))]),
    ([Input("x", True, Usage()), Input("H", True, Usage()), Input("W", True, Usage())], nn.Linear(4, 2),
     [("float32", (2, 240, 4)), 12, 20]),
    ([Input("x", True, Usage()), Input("x_size", True, Usage())], nn.Linear(4, 2),
     [("float32", (2, 240, 4)), [12, 20]]),
    ([Input("x", True, Usage()), Input("return_all", True, Usage())], nn.Identity(), [FLOATS, True]),
    ([Input("x", True, Usage()), Input("count", True, Usage(), "int")], nn.Identity(), [FLOATS, 2]),
    ([Input("x", True, Usage()), Input("y", False, Usage())], nn.Identity(), [FLOATS]),
    ([Input("xs", True, Usage(sequence=True))], nn.Conv2d(4, 2, 1), [[("float32", (2, 4, 12, 20))] * 2]),
    ([Input("xs", True, Usage(), "list[Tensor]")], nn.Identity(), [[FLOATS] * 2]),
]  # fmt: skip


def described(guess: Guess) -> list[Any]:
    tensors = [(spec.dtype, spec.shape) for spec in guess.specs()]

    def fill(tree: Any) -> Any:
        if isinstance(tree, dict):
            return tensors[tree["tensor"]]
        return [fill(item) for item in tree] if isinstance(tree, list) else tree

    return [fill(tree) for tree in guess.tree()]


@pytest.mark.parametrize(("inputs", "layer", "expected"), FIRST, ids=lambda value: str(value)[:40])
def test_first_guess(inputs: list[Input], layer: nn.Module, expected: list[Any]) -> None:
    assert described(next(first_guesses(layer, inputs, {}))) == expected


def test_a_size_of_the_constructor_is_tried_next() -> None:
    first, second = list(first_guesses(nn.Conv2d(3, 2, 1), [Input("x", True, Usage())], {"image_size": "32"}))[:2]
    assert described(first) == [("float32", (2, 3, 12, 20))]
    assert described(second) == [("float32", (2, 3, 32, 32))]


def test_tokens_are_less_than_the_number_of_embeddings() -> None:
    guess = next(first_guesses(nn.Embedding(9, 4), [Input("x", True, Usage())], {}))
    assert [(spec.low, spec.high) for spec in guess.specs()] == [(0, 9)]


class Forward(nn.Module):
    def forward(self, x: torch.Tensor, y: int, z=3, *rest, w=None, **others): ...


class Rest(nn.Module):
    def forward(self, *xs): ...


class Nothing(nn.Module):
    def forward(self, **xs): ...


class Keyword(nn.Module):
    def forward(self, x, *rest, w): ...


def test_inputs_of_forward() -> None:
    found = forward_inputs(Forward(), lambda name: Usage())
    assert [(item.name, item.required, item.default) for item in found] == [
        ("x", True, None), ("y", True, None), ("z", False, 3),
    ]  # fmt: skip
    assert [item.annotation for item in found] == ["torch.Tensor", "int", ""]
    assert [item.name for item in forward_inputs(Rest(), lambda name: Usage())] == ["xs"]


@pytest.mark.parametrize(("module", "why"), [(Nothing(), "takes no input"), (Keyword(), "needs the keyword w")])
def test_modules_without_a_positional_call(module: nn.Module, why: str) -> None:
    with pytest.raises(Unfit, match=why) as caught:
        forward_inputs(module, lambda name: Usage())
    assert caught.value.reason == "no_workload"
