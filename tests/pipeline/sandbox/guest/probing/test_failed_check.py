"""Explanations of failed checks, in the words that `repairs` understands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from kernelquarry.pipeline.sandbox.guest.probing.guarded_call import attempt

X = torch.zeros(2, 6, 10)


def size(x: Any) -> None:
    assert x.shape[1] == 4


def sizes(x: Any) -> None:
    if x.shape[-2:] != (6, 8):
        raise ValueError("no")


def whole(x: Any) -> None:
    assert x.size() == (2, 10, 6)


def rank(x: Any) -> None:
    assert x.ndim == 4


def ranks(x: Any) -> None:
    if x.dim() not in (4, 5):
        raise ValueError("wrong")


def shape(x: Any) -> None:
    if len(x.shape) != 2:
        raise ValueError


def multiple(x: Any) -> None:
    n = x.shape[2]
    assert n % 4 == 0 and x is not None


def count(x: Any) -> None:
    assert len(x) == 3


def call(x: Any) -> None:
    torch._assert(x.size(1) == 5, "")


def other(x: Any) -> None:
    assert x.missing == 3


def member(x: Any) -> None:
    assert x in [4, 5]


def holds(x: Any) -> None:
    if x.shape[0] == 2 or x.shape[1] != 6:
        raise ValueError("two")


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (size, "expected 4, got 6"),
        (sizes, "no; expected 8, got 10"),
        (whole, "(2, 6, 10) must be (2, 10, 6); expected 10, got 6; expected 6, got 10"),
        (rank, "must be 4D"),
        (ranks, "wrong; must be 4D, must be 5D"),
        (shape, "must be 2D"),
        (multiple, "10 must be divisible by 4"),
        (count, "len(x) must be 3"),
        (call, "expected 5, got 6"),
        (other, "'Tensor' object has no attribute 'missing'"),
        (member, "0. must be one of [4, 5]"),
        (holds, "two"),
    ],
)
def test_explanation(check: Callable[[Any], None], message: str) -> None:
    _, failure = attempt(lambda: check(X), __file__)
    assert failure is not None and failure.message.endswith(message)  # after what pytest makes of an assertion
