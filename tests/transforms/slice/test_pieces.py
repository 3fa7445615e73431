"""Pieces are connected and convex, and their text computes what the module computes there."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from kernelquarry.pipeline.sandbox.guest.slicing.recorder import Recorder, merged
from kernelquarry.transforms.slice.pieces import Piece, pieces_of
from kernelquarry.transforms.slice.traced_graph import Node, parse_graph
from kernelquarry.transforms.slice.write_piece import NotWritten, write_piece


class Block(nn.Module):
    """Layers, functions, operators, sizes, a split, an in-place operator and a branch."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 8, 3, padding=1, bias=False)
        self.norm, self.act, self.drop = nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.Dropout(0.5)
        self.proj = nn.Linear(8, 16)
        self.scale = nn.Parameter(torch.ones(16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, _, h, w = x.shape
        x = self.act(self.norm(self.conv(x)))
        y = self.drop(x.flatten(2).transpose(1, 2).contiguous())
        y = self.proj(y) * self.scale
        a, gate = y.chunk(2, dim=-1)
        y = a * torch.sigmoid(gate) * 8**-0.5
        x += y.transpose(1, 2).reshape(b, 8, h, w)
        return nn.functional.avg_pool2d(x, 2)


def record(module: nn.Module, *shapes: tuple[int, ...]) -> tuple[list[Node], list[Any]]:
    """The graph of a module on inputs of these shapes, and the values of the first call."""
    graphs, values = [], []
    torch.manual_seed(0)
    for shape in shapes:
        x = torch.randn(shape)
        recorder = Recorder(module.eval(), [x], ["x"], 400)
        with torch.no_grad(), recorder.with_layers():
            module(x)
        graphs.append(recorder.nodes)
        values.append([v.clone() if isinstance(v, torch.Tensor) else v for v in recorder._values])
    return parse_graph(merged(graphs)), values[0]


def names(piece: Piece) -> list[str]:
    return [piece.graph[place].operator for place in piece.nodes if piece.graph[place].is_operator]


def largest(graph: list[Node], *without: str) -> Piece:
    """The largest piece without these operators."""
    fitting = [piece for piece in pieces_of(graph) if not set(without) & set(names(piece))]
    return max(fitting, key=lambda piece: piece.operators)


def run(piece: Piece, *inputs: torch.Tensor) -> torch.Tensor:
    """The written module on these inputs."""
    written = write_piece(piece)
    namespace: dict[str, Any] = {"__name__": "written"}
    exec(written.code, namespace)
    with torch.no_grad():
        result: torch.Tensor = namespace["Model"](*written.init_args).eval()(*inputs)
    return result


def test_the_text_is_what_a_person_writes() -> None:
    graph, _ = record(Block(), (2, 4, 6, 8), (3, 4, 4, 10))
    written = write_piece(largest(graph, "+", "avg_pool2d", "Linear", "*"))
    assert (
        written.code
        == """from torch import nn


class Model(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(out_channels)
        self.act = nn.ReLU()

    def forward(self, x):
        return self.act(self.norm(self.conv(x)))
"""
    )
    assert (written.name, written.init_args) == ("Conv2dBatchNorm2dReLU", (4, 8))
    assert [spec.shape for spec in written.inputs] == [(2, 4, 6, 8)]


def test_a_piece_computes_what_the_module_does_at_sizes_that_it_never_saw() -> None:
    graph, _ = record(Block(), (2, 4, 6, 8), (3, 4, 4, 10))
    piece = next(p for p in pieces_of(graph) if sorted(names(p)) == ["*", "*", "sigmoid"] and len(p.inputs) == 1)
    y = torch.randn(5, 7, 16)
    a, gate = y.chunk(2, dim=-1)
    torch.testing.assert_close(run(piece, y), a * torch.sigmoid(gate) * 8**-0.5)
    assert "8**-0.5" in write_piece(piece).code and "x1, x2 = " in write_piece(piece).code
    assert not any("Dropout" in write_piece(p).code for p in pieces_of(graph))


def test_pieces_are_convex_and_are_not_the_whole_graph() -> None:
    class Branches(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = torch.exp(x)
            return torch.sin(y) + torch.cos(y)

    graph, _ = record(Branches(), (2, 3))
    found = {tuple(sorted(names(piece))) for piece in pieces_of(graph)}
    assert found == {("exp",), ("sin",), ("cos",), ("+",), ("exp", "sin"), ("cos", "exp"), ("+", "sin"), ("+", "cos"),
                     ("+", "cos", "sin")}  # fmt: skip
    # `+` with `exp` and one branch alone would take the other branch from outside, which takes `exp`.


def test_a_pattern_ignores_settings_spelling_and_reshapes() -> None:
    def pattern(module: nn.Module, shape: tuple[int, ...]) -> str:
        graph, _ = record(nn.Sequential(module, nn.Sigmoid()), shape)
        return next(piece for piece in pieces_of(graph) if piece.operators == 1 and names(piece) != ["Sigmoid"]).pattern

    class Spelled(nn.Module):
        def __init__(self, call: Any) -> None:
            super().__init__()
            self.call = call

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            result: torch.Tensor = self.call(x)
            return result

    image = (2, 4, 6, 8)
    assert pattern(nn.Conv2d(4, 8, 3), image) == pattern(nn.Conv2d(4, 4, 1, bias=False), image)
    spellings = (nn.ReLU(), Spelled(torch.relu), Spelled(nn.functional.relu), Spelled(lambda x: x.relu()))
    assert len({pattern(one, image) for one in spellings}) == 1
    assert pattern(nn.ReLU(), image) != pattern(nn.Tanh(), image)


def test_a_size_that_the_inputs_do_not_have_is_refused() -> None:
    class Folded(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            b, h, w, c = x.shape
            return torch.exp(torch.sin(x.reshape(b, h * w, c)).reshape(b, h, w, c).mul(2)).sum(1)

    graph, _ = record(Folded(), (2, 4, 6, 3), (3, 5, 7, 3))
    piece = next(p for p in pieces_of(graph) if names(p) == ["sin", "*"])
    with pytest.raises(NotWritten, match="size_from_outside"):
        write_piece(piece)


def test_a_malformed_graph_is_refused() -> None:
    with pytest.raises(ValueError, match="takes a later one"):
        parse_graph([{"kind": "method", "name": "exp", "args": [{"node": 1}], "kwargs": {}}])
    with pytest.raises(ValueError, match="a node called"):
        parse_graph([{"kind": "function", "name": "import os", "args": [], "kwargs": {}}])
    with pytest.raises(ValueError, match="an argument called"):
        parse_graph([{"kind": "function", "name": "torch.eye", "args": [], "kwargs": {"n)": {"value": 1}}}])


def test_operators_that_combine_elements_are_counted() -> None:
    graph, _ = record(Block(), (2, 4, 6, 8), (3, 4, 4, 10))
    combining = {
        operator for piece in pieces_of(graph) if piece.operators == piece.combining for operator in names(piece)
    }
    assert combining == {"Conv2d", "Linear", "avg_pool2d"}
