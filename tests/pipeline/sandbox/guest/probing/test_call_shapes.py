"""The shapes of calls are those that another shape led to, in order, with a layer of torch as one call."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kernelquarry.pipeline.sandbox.guest.probing.call_shapes import CallShapes


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.conv(x)) * 2


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.ModuleList([Block(), nn.MultiheadAttention(6, 2)])

    def forward(self, x: Tensor) -> Tensor:
        x = self.body[0](x)
        first, _ = x.flatten(2).chunk(2, dim=1)
        return (first.mT @ first).argmax(-1) + torch.zeros(3, 1, 1, dtype=torch.int64)


def shapes(module: nn.Module, *inputs: Tensor) -> list[tuple[str, list[int], str]]:
    calls = CallShapes(module)
    with calls.with_layers():
        module(*inputs)
    return [(each["call"], each["shape"], each["dtype"]) for each in calls.found]


def test_calls_that_change_the_shape() -> None:
    assert shapes(Net(), torch.randn(1, 2, 6, 5)) == [
        ("self.body[0].conv", [1, 4, 4, 3], "float32"),
        ("flatten", [1, 4, 12], "float32"),
        ("chunk", [1, 2, 12], "float32"),
        ("mT", [1, 12, 2], "float32"),
        ("matmul", [1, 12, 12], "float32"),
        ("argmax", [1, 12], "int64"),
        ("zeros", [3, 1, 1], "int64"),
        ("add", [3, 1, 12], "int64"),
    ]


def test_nothing_inside_of_a_layer_is_a_call() -> None:
    x = torch.randn(3, 1, 6)
    assert shapes(nn.Sequential(nn.TransformerEncoderLayer(6, 2, 8), nn.Flatten()), x) == [
        ("self[1]", [3, 6], "float32")
    ]


def test_a_call_that_is_repeated_is_said_once_and_a_long_forward_is_cut() -> None:
    class Long(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            for i in range(40):
                x.sum()
                x[:, : i + 1].sum(0)
            return x

    found = shapes(Long(), torch.randn(2, 40))
    assert len(found) == 24 and found[:3] == [
        ("sum", [], "float32"),
        ("getitem", [2, 1], "float32"),
        ("sum", [1], "float32"),
    ]


def test_calls_are_as_before_afterwards() -> None:
    before = nn.Module.__call__
    shapes(Net(), torch.randn(1, 2, 6, 5))
    assert nn.Module.__call__ is before


def test_names_of_layers_are_as_they_are_and_changes_in_place_count() -> None:
    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.proj_ = nn.Linear(2, 3)

        def forward(self, x: Tensor) -> Tensor:
            y = self.proj_(x)
            y.unsqueeze_(1)
            return y

    assert shapes(Named(), torch.randn(4, 2)) == [
        ("self.proj_", [4, 3], "float32"),
        ("unsqueeze", [4, 1, 3], "float32"),
    ]


def test_nested_tensors_are_left_out() -> None:
    class Nested(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.nested.to_padded_tensor(torch.nested.as_nested_tensor([x[0], x[1, :2]]), 0.0)

    assert ("getitem", [2], "float32") in shapes(Nested(), torch.randn(2, 3))
