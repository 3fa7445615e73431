"""Trace modules: their state, symbolic sizes, and the graph."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
import sympy
import torch
from torch import Tensor, nn
from torch.utils._sympy.functions import FloorDiv

from kernelquarry.pipeline.sandbox.guest.lowering.functional_graph import (
    NotLowered,
    Trace,
    differing_sizes,
    held_tensors,
    placeholders,
    state_of,
    trace,
)
from kernelquarry.pipeline.sandbox.guest.lowering.sizes import _canonical


class Held(nn.Module):
    """A module with tensors in every place that can hold them."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.register_buffer("scale", torch.ones(2))
        self.register_buffer("hidden", torch.ones(2), persistent=False)
        self.plain = torch.ones(2)
        self.listed = [torch.ones(2), {"a": torch.ones(2)}, 3]
        self._private = [torch.ones(2)]
        self.child = nn.Linear(2, 2, bias=False)
        self.tied = self.child
        self.child.offset = torch.ones(2)

    def forward(self, x: Tensor) -> Tensor:
        return self.child(x) * self.weight * self.scale + self.plain + self.listed[1]["a"] + self.child.offset


def test_state_has_one_name_each_in_one_order() -> None:
    assert [(state.source, state.name) for state in state_of(Held())] == [
        ("parameter", "weight"),
        ("parameter", "child.weight"),
        ("buffer", "scale"),
        ("buffer", "hidden"),
        ("constant", "plain"),
        ("constant", "listed[0]"),
        ("constant", "listed[1]['a']"),
        ("constant", "child.offset"),
    ]


def test_constants_have_their_paths_as_names() -> None:
    module = Held()
    for path, container, key in held_tensors(module):
        assert container[key] is eval(f"module.{path}", {"module": module})


def workload(*shapes: tuple[int, ...], dtype: str = "float32", kwargs: str = "{}") -> dict[str, Any]:
    return {
        "tensors": [{"name": "x", "shape": list(shape), "dtype": dtype} for shape in shapes],
        "args": json.dumps([{"tensor": i} for i in range(len(shapes))]),
        "kwargs": kwargs,
    }


@pytest.mark.parametrize(
    ("workloads", "expected"),
    [
        ([workload((2, 3))], [[False, False]]),
        ([workload((2, 3)), workload((2, 4))], [[False, True]]),
        ([workload((2, 3), (5,)), workload((4, 3), (5,)), workload((4, 3), (6,))], [[True, False], [True]]),
        ([workload((2, 3)), workload((2, 3, 1))], None),
        ([workload((2, 3)), workload((2, 3), (2,))], None),
        ([workload((2, 3)), workload((2, 3), dtype="int64")], None),
        ([workload((2, 3)), workload((2, 3), kwargs='{"a":1}')], None),
    ],
)
def test_sizes_that_differ(workloads: list[dict[str, Any]], expected: list[list[bool]] | None) -> None:
    assert differing_sizes(workloads) == expected


class Apply(nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function
        self.register_buffer("count", torch.zeros(3))

    def forward(self, *args: Tensor) -> Any:
        return self.function(self, *args)


def traced(function: Any, *shapes: tuple[int, ...], symbolic: list[list[bool]] | None = None) -> Trace:
    module = Apply(function).eval()
    return trace(module, state_of(module), workload(*shapes), symbolic)


def operators(result: Trace) -> list[str]:
    return [str(node.target) for node in result.graph.graph.nodes if node.op == "call_function"]


def test_assumptions_about_symbols_are_recorded() -> None:
    result = traced(lambda m, x: x * 2 if x.shape[0] % 2 == 0 else x, (6, 3), symbolic=[[True, False]])
    assert result.holds([[8, 3]], {}) and not result.holds([[7, 3]], {})
    free = traced(lambda m, x: x * 2, (6, 3), symbolic=[[True, False]])
    assert free.holds([[7, 3]], {}) and not free.holds([[1, 3]], {}), "a symbol is at least 2"


def test_a_trace_leaves_the_module_unchanged() -> None:
    module = Held().eval()
    before = {path: container[key] for path, container, key in held_tensors(module)}
    trace(module, state_of(module), workload((4, 2)), None)
    assert all(container[key] is before[path] for path, container, key in held_tensors(module))


class Remembering(nn.Module):
    """A module that caches a table by size."""

    def __init__(self) -> None:
        super().__init__()
        self.length, self.table = 0, torch.zeros(0)
        self.seen: list[Any] = []

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[0] != self.length:
            self.length = x.shape[0]
            self.table = torch.arange(self.length)
            self.seen.append(self.length)
        return x * self.table.unsqueeze(1)


def test_attributes_set_in_a_trace_are_restored() -> None:
    module = Remembering().eval()
    before = dict(vars(module))
    for symbolic in ([[True, False]], None):
        graph = trace(module, state_of(module), workload((4, 2)), symbolic).graph
        assert "aten.mul.Tensor" in [str(node.target) for node in graph.graph.nodes]
        assert all(vars(module)[name] is value for name, value in before.items()) and not module.seen


def test_assertions_of_a_solver_are_left_out() -> None:
    names = operators(traced(lambda m, x: torch.linalg.solve(x, x + 1), (3, 3)))
    assert "aten._linalg_solve_ex.default" in names and "aten._linalg_check_errors.default" not in names


def test_inference_mode_is_ignored() -> None:
    assert operators(traced(torch.inference_mode()(lambda m, x: x[None] + 1), (2, 3))) == [
        "aten.unsqueeze.default",
        "aten.add.Tensor",
    ]


def test_in_place_operators_become_functions() -> None:
    assert not any(name.endswith("_.default") for name in operators(traced(lambda m, x: x.clone().add_(1), (2, 3))))
    assert operators(traced(lambda m, x: x.add_(1), (2, 3)))[-1] == "aten.copy_.default", "of an argument"


def test_the_graph_is_on_the_gpu() -> None:
    result = traced(lambda m, x: x + torch.ones(3), (2, 3))
    assert all(tensor.device.type == "cuda" for tensor in result.inputs)
    devices = [node.kwargs["device"] for node in result.graph.graph.nodes if "device" in node.kwargs]
    assert devices and all(device.type == "cuda" for device in devices)


@pytest.mark.parametrize(
    "function",
    [
        lambda m, x, i: x[i.long()],
        lambda m, x, i: x * torch.tensor([1.0, 2.0, 3.0]),
        lambda m, x, i: x.topk(2).values,
        lambda m, x, i: (x, {"a": [x, None, 3]}),
    ],
)
def test_traceable_functions(function: Any) -> None:
    assert traced(function, (4, 3), (2,)).graph is not None


@pytest.mark.parametrize("dtype", ["float32", "int64", "float16", "float64"])
def test_a_number_read_from_a_tensor_has_the_dtype_of_a_number(dtype: str) -> None:
    """Later values have the dtypes that eager gives, and nothing reads the number."""

    def forward(module: nn.Module, x: Tensor, y: Tensor) -> list[Tensor]:
        number = y.to(getattr(torch, dtype)).sum().item()
        return [x * number, x.long() * number, 1 / number + x.half()]

    result = traced(forward, (2, 3), (4,))
    values = next(node for node in result.graph.graph.nodes if node.op == "output").args[0]
    expected = [value.dtype for value in forward(nn.Module(), torch.ones(2, 3), torch.ones(4))]
    assert [node.meta["val"].dtype for node in values] == expected
    assert "aten._local_scalar_dense.default" not in operators(result)


class Attending(nn.Module):
    """Self-attention with and without a mask, cross-attention, and an additive mask."""

    def __init__(self, heads: int, batch_first: bool) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, heads, batch_first=batch_first)

    def forward(self, x: Tensor, mask: Tensor) -> list[Tensor]:
        calls = [((x, x, x), None), ((x, x, x), mask > 0), ((x, x.clone(), x), None), ((x, x, x), mask)]
        return [self.attention(*given, attn_mask=added)[0] for given, added in calls]


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("batch_first", [False, True])
def test_attention_has_the_layout_of_eval_mode(heads: int, batch_first: bool) -> None:
    module, shapes = Attending(heads, batch_first).eval(), ((4, 5, 8), (5, 5) if batch_first else (4, 4))
    result = trace(module, state_of(module), workload(*shapes), None)
    values = next(node for node in result.graph.graph.nodes if node.op == "output").args[0]
    with torch.no_grad():
        expected = module(*map(torch.zeros, shapes))
    assert [node.meta["val"].stride() for node in values] == [value.stride() for value in expected]


def test_literals_are_inputs_between_state_and_arguments() -> None:
    numbers = [[0.1, 0.2, 0.3], [1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    result = traced(lambda m, x: x @ torch.tensor(numbers) + m.count, (2, 3))
    (literal,) = result.literals
    assert json.loads(literal.name) == {"dtype": "torch.float32", "numbers": numbers}
    assert [tuple(value.shape) for value in result.inputs[-2:]] == [(3, 3), (2, 3)]
    assert [node.meta["val"].shape for node in placeholders(result.graph)] == [value.shape for value in result.inputs]


def test_outputs_are_a_tree() -> None:
    result = traced(lambda m, x: ({"a": [x + 1, None]}, 3), (2, 3))
    assert result.outputs == {"tuple": [{"dict": [["a", {"list": [{"tensor": 0}, {"value": None}]}]]}, {"value": 3}]}


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda m, x: x + torch.randn(3), "RANDOM_OP"),
        (lambda m, x: m.count.add_(1) * x, "STATEFUL"),
        (lambda m, x: x[x > 0], "GRAPH_BREAK"),
        (lambda m, x: x * 2 if x.sum().item() > 0 else x, "GRAPH_BREAK"),
        (lambda m, x: x[: x.sum().long().item()], "GRAPH_BREAK"),
        (lambda m, x: x * math.sqrt(x.sum().item()), "GRAPH_BREAK"),
        (lambda m, x: x.nonzero(), "GRAPH_BREAK"),
        (lambda m, x: {x}, "GRAPH_BREAK"),
        (lambda m, x: x.no_such(), "GRAPH_BREAK"),
        (lambda m, x: x[:, :2] * torch.tensor([[1.0, 2.0]] * 99).sum(0), "UNSUPPORTED_OP"),
        (lambda m, x: x[:, :3] * torch.tensor([[1.0, 2.0, math.inf]] * 3).sum(0), "UNSUPPORTED_OP"),
    ],
)
def test_functions_that_cannot_be_lowered(function: Any, reason: str) -> None:
    with pytest.raises(NotLowered) as refusal:
        traced(function, (2, 3))
    assert refusal.value.args[0] == reason


def test_equal_sizes_have_one_form() -> None:
    size = sympy.Symbol("s", integer=True, positive=True)
    assert _canonical(FloorDiv(size - 1, 2) + 1) == _canonical(FloorDiv(size + 1, 2))
    assert _canonical(FloorDiv(size - 3, 2)) == _canonical(FloorDiv(size + 1, 2) - 2)
    assert _canonical(FloorDiv(size - 3, 2) + 5).subs(size, 8) == 7


def test_questions_about_layout_are_no_conditions_on_sizes() -> None:
    shapes = [(2, 3, 12, 20), (3, 3, 11, 23)]

    def pooled(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.max_pool2d(x, 3, 2, 1).permute(0, 2, 3, 1).flatten(1, 2)

    result = traced(pooled, shapes[0], symbolic=[[True, False, True, True]])
    assert result.guards([[shape] for shape in shapes], {}) == []
