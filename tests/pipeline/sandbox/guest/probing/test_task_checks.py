"""Calls that are tasks, and calls that are not. End-to-end cases are in `tests/transforms/probe/cases/refused.txt`."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from kernelquarry.pipeline.sandbox.guest.probing import task_checks
from kernelquarry.pipeline.sandbox.guest.probing.call_search import Caller
from kernelquarry.pipeline.sandbox.guest.probing.guarded_call import Unfit
from kernelquarry.pipeline.sandbox.guest.probing.guess import SIZES, Guess, TensorArg

GUESS = Guess((TensorArg("x", ("B", "C")),), tuple(SIZES[0].items()))


class Function(nn.Module):
    def __init__(self, function: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(x)


def caller(function: Callable[[Tensor], Any]) -> Caller:
    return Caller(Function(function), __file__)


TASKS: dict[str, Callable[[Tensor], Any]] = {
    "a function": torch.exp,
    "a tree": lambda x: {"a": (x.exp(), [x.argmax(1)]), "b": None},
    "an input and a result": lambda x: (x, x.exp()),
    "a view and a result": lambda x: (x[:1], x.exp()),
    "a copy of a row": lambda x: x[:1].clone(),
    "another memory layout": lambda x: x.t().contiguous(),
    "a negation": lambda x: -x,
}
NO_TASKS: dict[str, tuple[Callable[[Tensor], Any], str, str]] = {
    "noise": (lambda x: x + torch.randn(()), "random", "two calls"),
    "noise of numpy": (lambda x: x + float(__import__("numpy").random.rand()), "random", "two calls"),
    "noise of python": (lambda x: x + __import__("random").random(), "random", "two calls"),
    "a shape that changes": (lambda x: x[:, : int(torch.randint(1, 16, ()))].exp(), "random", "two calls"),
    "the input": (lambda x: x, "returns_input", "1 outputs"),
    "a view of a row": (lambda x: x[:1], "returns_input", "1 outputs"),
    "views of all of it": (lambda x: [x.unsqueeze(0), x.flatten(), x.t()], "returns_input", "3 outputs"),
    "a view and integers": (lambda x: (x.t(), x.argmax(1)), "returns_input", "1 outputs"),
    "a copy of the input": (lambda x: x.clone(), "returns_input", "1 outputs"),
    "a constant": (lambda x: torch.ones(3), "constant_output", "[(3,)]"),
    "the input's integers and a constant": (lambda x: (torch.ones(1), x.argmax(1)), "constant_output", "[(1,)]"),
    "one infinite element": (lambda x: torch.cat([x.flatten(), x.new_tensor([torch.inf])]), "not_finite", "3.0%"),
    "a changed input": (lambda x: x.zero_() + 1, "changes_input", "forward changes x"),
    "a boolean": (lambda x: x > 0, "no_tensor_output", "torch.bool"),
    "nothing": (lambda x: x[:, :0], "no_tensor_output", "torch.float32"),
    "a sparse tensor": (lambda x: x.to_sparse(), "no_tensor_output", "sparse"),
    "eight-bit floats": (lambda x: x.to(torch.float8_e4m3fn), "no_tensor_output", "eight-bit"),
}


@pytest.mark.parametrize("about", TASKS)
def test_task(about: str) -> None:
    task_checks.check(caller(TASKS[about]), GUESS)


@pytest.mark.parametrize("about", NO_TASKS)
def test_no_task(about: str) -> None:
    function, reason, evidence = NO_TASKS[about]
    with pytest.raises(Unfit) as caught:
        task_checks.check(caller(function), GUESS)
    assert caught.value.reason == reason and evidence in caught.value.evidence


def test_noise_in_training_mode_only() -> None:
    module = nn.Sequential(nn.Linear(16, 4), nn.Dropout(0.5), nn.BatchNorm1d(4))
    task_checks.check(Caller(module.eval(), __file__), GUESS)
    with pytest.raises(Unfit, match="a call changes 2") as caught:
        task_checks.check(Caller(module.train(), __file__), GUESS)
    assert caught.value.reason == "random"


def differ(one: nn.Module, other: nn.Module) -> bool:
    try:
        task_checks.check_state(task_checks.state(one), task_checks.state(other))
    except Unfit as unfit:
        return unfit.reason == "random"
    return False


def test_a_state_of_eight_bit_floats_that_a_call_changes_is_named() -> None:
    module = Function(lambda x: x + torch.randn(()))
    module.register_buffer("mark", torch.ones(1).to(torch.float8_e4m3fn))
    module.register_forward_hook(lambda module, *_: module.mark.copy_(module.mark.float() + 1) and None)
    with pytest.raises(Unfit, match="a call changes mark"):
        task_checks.check(Caller(module, __file__), GUESS)


def test_states_are_compared_exactly() -> None:
    one = nn.BatchNorm1d(3)
    assert not differ(one, copy.deepcopy(one))
    one.weight.data[1] = 0.25
    for change in (0.5, torch.nan):
        other = copy.deepcopy(one)
        other.weight.data[1] = change
        assert differ(one, other) and differ(other, one)
        assert not differ(other, copy.deepcopy(other))
    assert differ(one, nn.BatchNorm1d(4)) and differ(one, nn.BatchNorm1d(3, affine=False))
    assert differ(one, copy.deepcopy(one).double())
