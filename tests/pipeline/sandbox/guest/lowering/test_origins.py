"""Operators and values have the expressions of the source that they come from."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kernelquarry.pipeline.sandbox.guest.lowering.functional_graph import state_of, trace
from kernelquarry.pipeline.sandbox.guest.lowering.origins import with_values

WORKLOAD = {"tensors": [{"name": "x", "shape": [3, 4], "dtype": "float32"}], "args": '[{"tensor":0}]', "kwargs": "{}"}


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x: Tensor) -> Tensor:
        return F.silu(x) * self.scale


def halved(values: Tensor) -> Tensor:
    values /= 2
    return values


class Whole(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Scaled()
        self.layers = nn.Sequential(nn.Linear(4, 4), nn.Sigmoid())
        self.blocks = nn.ModuleList([Scaled()])

    def forward(self, x: Tensor) -> Tensor:
        x = self.layers(self.inner(x)).relu()
        for block in self.blocks:
            x = block(x)
        return halved((x
                       .exp()).sum(1))  # fmt: skip


def sources(module: nn.Module) -> dict[str, str]:
    """Operator of the graph -> its source expression; "" if it has none."""
    graph = trace(module, state_of(module), WORKLOAD, None).graph
    return {
        node.name: node.meta["from_node"][0].name if "from_node" in node.meta else ""
        for node in graph.graph.nodes
        if node.op == "call_function"
    }


def test_operators_have_their_expressions() -> None:
    found = sources(Whole().eval())
    assert list(dict.fromkeys(found.values())) == [
        "F.silu(x)",
        "F.silu(x) * self.inner.scale",  # as the module that is lowered reaches it
        "self.layers[0](...)",  # called by torch's Sequential
        "self.layers[1](...)",
        "self.layers(self.inner(x)).relu()",
        "F.silu(x) * self.blocks[0].scale",
        "x.exp()",
        "x.exp().sum(1)",
        "values /= 2",
    ]


def test_an_operator_without_a_call_in_the_source_has_no_expression() -> None:
    assert set(sources(nn.Sequential(nn.ReLU())).values()) <= {"", "self[0](...)", "module(input)"}


def test_a_module_without_a_file_has_no_expressions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scaled, "__module__", "nowhere")
    assert set(sources(Scaled()).values()) == {""}


def test_sources_of_values_stand_before_their_kernel() -> None:
    code = "a = 1\nk_0 = async_compile.triton('k_0', '''\n''')\nk_1 = async_compile.triton('k_1', '''\n''')\n"
    lines = with_values(code, {"k_0": {"x.exp(), aten.exp": ["tmp0", "tmp1"]}, "k_1": {}}).splitlines()
    assert lines[:4] == [
        "a = 1",
        "# Source node to value mapping:",
        "#   x.exp(), aten.exp => tmp0, tmp1",
        "k_0 = async_compile.triton('k_0', '''",
    ]
    assert "".join(f"{line}\n" for line in [lines[0], *lines[3:]]) == code
