"""What a module does with values: what it asserts of them is taken to hold, and their numbers are tensors."""

from __future__ import annotations

import ast
import warnings

import pytest
import torch
from asserting import Asserting, Branching, Choosing, Wrong
from torch import nn

from kernelquarry.pipeline.sandbox.guest.lowering.refusal import Refused
from kernelquarry.pipeline.sandbox.guest.lowering.source import span
from kernelquarry.pipeline.sandbox.guest.lowering.trace import state_of, trace
from kernelquarry.pipeline.sandbox.guest.lowering.values import _tests, _wanted

WORKLOAD = {"tensors": [{"name": "x", "shape": [4, 6], "dtype": "float32"}], "args": '[{"tensor":0}]', "kwargs": "{}"}


def traced(module: nn.Module) -> list[str]:
    """The operators that its result needs."""
    graph = trace(module, state_of(module), WORKLOAD, [[True, True]]).graph
    graph.graph.eliminate_dead_code()
    return [str(node.target) for node in graph.graph.nodes if node.op == "call_function"]


def test_what_only_raises_or_warns_is_passed() -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "large")
        assert traced(Asserting()) == ["aten.mul.Tensor"]


@pytest.mark.parametrize("module", [Wrong(), Branching(), Choosing()])
def test_what_is_no_assertion_of_values_is_as_it_was(module: nn.Module) -> None:
    with pytest.raises(Refused):
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
def test_each_part_is_as_the_whole_needs_it(statement: str, part: str, wanted: bool) -> None:
    tree = ast.parse(statement)
    ((_, test, passes),) = _tests(tree)
    name = next(n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == part)
    assert _wanted(test, passes, span(name)) is wanted


def test_conditions_that_choose_are_not_assertions() -> None:
    tree = ast.parse("if a: print(1)\nelse: b = 1\nif a: b = 2\nwhile a: raise ValueError()")
    assert list(_tests(tree)) == []


def test_only_the_passing_way_is_known() -> None:
    """Outside of a trace, the same module does raise."""
    with pytest.raises(AssertionError, match="range"):
        Asserting()(-torch.ones(4, 6))
