"""Modules that read values: their assertions hold, and numbers that they read stay tensors."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from asserting import Asserting, Branching, Choosing, Wrong
from torch import Tensor, nn

from kernelquarry.pipeline.sandbox.guest.lowering.functional_graph import state_of, trace
from kernelquarry.pipeline.sandbox.guest.lowering.refusal import NotLowered
from kernelquarry.pipeline.sandbox.guest.lowering.source_position import span
from kernelquarry.pipeline.sandbox.guest.lowering.tensor_values import _required, _tests

WORKLOAD = {"tensors": [{"name": "x", "shape": [4, 6], "dtype": "float32"}], "args": '[{"tensor":0}]', "kwargs": "{}"}


def traced(module: nn.Module) -> list[str]:
    """The operators that the result needs."""
    graph = trace(module, state_of(module), WORKLOAD, [[True, True]]).graph
    graph.graph.eliminate_dead_code()
    return [str(node.target) for node in graph.graph.nodes if node.op == "call_function"]


def test_conditions_that_only_raise_or_warn_hold() -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "large")
        assert traced(Asserting()) == ["aten.mul.Tensor"]


@pytest.mark.parametrize("module", [Wrong(), Branching(), Choosing()])
def test_other_conditions_are_unchanged(module: nn.Module) -> None:
    with pytest.raises(NotLowered):
        traced(module)


@pytest.mark.parametrize(
    ("statement", "part", "wanted"),
    [
        ("assert a", "a", True),
        ("assert not a", "a", False),
        ("assert b and not (a or c)", "a", False),
        ("if a: raise ValueError()", "a", False),
        ("if b or not a: raise ValueError()", "a", True),
        ("if a:\n  b = 1\n  raise ValueError(b)\nelse: b = 2", "a", False),
        ("if not (b and not a): warn('no')", "a", False),
        ("torch._assert(a, 'no')", "a", True),
    ],
)
def test_parts_of_a_condition_have_the_required_value(statement: str, part: str, wanted: bool) -> None:
    tree = ast.parse(statement)
    ((_, test, passes),) = _tests(tree)
    name = next(n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == part)
    assert _required(test, passes, span(name)) is wanted


class Apply(nn.Module):
    def __init__(self, function: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(x)


def steps(function: Callable[[Tensor], Any]) -> list[tuple[str, list[Any]]]:
    """The operators that the result needs, each with its numbers."""
    module = Apply(function)
    graph = trace(module, state_of(module), WORKLOAD, [[False, True]]).graph
    graph.graph.eliminate_dead_code()
    calls = [node for node in graph.graph.nodes if node.op == "call_function"]
    return [(str(node.target), [arg for arg in node.args if isinstance(arg, int | float)]) for node in calls]


@pytest.mark.parametrize(
    ("function", "plain"),
    [
        (lambda x: [x[0, int(i)] for i in torch.arange(0, 4, 2)], lambda x: [x[0, 0], x[0, 2]]),
        (lambda x: [x[i] for i in range(torch.tensor([1, 2]).sum())], lambda x: [x[0], x[1], x[2]]),
        (lambda x: x * torch.linspace(0, 2, 3)[1].item(), lambda x: x * 1.0),
        (lambda x: x * float(torch.ones(3, dtype=torch.bfloat16).sum()), lambda x: x * 3.0),
        (lambda x: x * torch.arange(3).add_(1).numpy()[2].item(), lambda x: x * 3),
        (lambda x: x[0, np.clip(torch.arange(4)[3], 0, 2)], lambda x: x[0, 2]),
        (lambda x: x if (torch.zeros(3) == 0).all() else x.exp(), lambda x: x),
    ],
)
def test_numbers_that_follow_from_no_input_are_known(
    function: Callable[[Tensor], Any], plain: Callable[[Tensor], Any]
) -> None:
    assert steps(function) == steps(plain)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x[0, : int(x.sum())],
        lambda x: x * torch.full((2,), x.shape[1]).numpy().sum(),
        lambda x: x if torch.rand(3).sum() > 1 else -x,
        lambda x: x + x.numpy().sum(),
    ],
)
def test_other_numbers_are_unknown(function: Callable[[Tensor], Tensor]) -> None:
    with pytest.raises(NotLowered):
        traced(Apply(function))


def test_conditions_with_two_branches_are_no_assertions() -> None:
    tree = ast.parse("if a: print(1)\nelse: b = 1\nif a: b = 2\nwhile a: raise ValueError()")
    assert list(_tests(tree)) == []


def test_a_failing_condition_raises_without_a_trace() -> None:
    """Outside of a trace, the same module raises."""
    with pytest.raises(AssertionError, match="range"):
        Asserting()(-torch.ones(4, 6))
