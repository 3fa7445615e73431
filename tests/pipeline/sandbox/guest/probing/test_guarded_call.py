"""Guarded calls and their failures."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from kernelquarry.pipeline.sandbox.guest.probing.guarded_call import TooBig, attempt, parameter_cap, seed


def divide(number: int) -> float:
    return 1 / number


def call(first: int, second: int) -> float:
    return divide(first) + (divide(second))


def test_a_result() -> None:
    assert attempt(lambda: call(1, 2), __file__) == (1.5, None)


def test_a_failure_has_the_names_of_the_failed_expression() -> None:
    _, failure = attempt(lambda: call(1, 0), __file__)
    assert failure is not None
    assert str(failure) == "ZeroDivisionError: division by zero"
    assert failure.names == ("call",) and failure.inner_names == ("number",)
    _, other_file = attempt(lambda: call(1, 0), "other_file.py")
    assert other_file is not None and (other_file.line, other_file.names) == (0, ())


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, GeneratorExit, MemoryError, RecursionError])
def test_every_exception_is_caught(error: type[BaseException]) -> None:
    def fail() -> None:
        raise error("why")

    _, failure = attempt(fail, __file__)
    assert failure is not None and str(failure) == f"{error.__name__}: why"


def test_too_big_is_not_caught() -> None:
    def fail() -> None:
        raise TooBig("why")

    with pytest.raises(TooBig):
        attempt(fail, __file__)


def test_messages_are_capped() -> None:
    def fail() -> None:
        raise ValueError("x" * 100_000)

    _, failure = attempt(fail, __file__)
    assert failure is not None and len(str(failure)) == 600 and len(failure.message) < 10_000


def test_seeding_repeats_every_generator() -> None:
    draws: list[Callable[[], float]] = [
        lambda: float(torch.rand(())),
        lambda: float(np.random.rand()),
        __import__("random").random,
    ]
    seed(3)
    first = [draw() for draw in draws]
    seed(3)
    assert [draw() for draw in draws] == first


class Heavy(nn.Module):
    def __init__(self, parameter: int, buffer: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(parameter))
        self.register_buffer("table", torch.empty(buffer))
        self.register_buffer("none", None)


def test_parameters_and_buffers_are_counted_together() -> None:
    with parameter_cap(100):
        Heavy(60, 40)
    for sizes in ((60, 41), (101, 0), (0, 101)):
        with pytest.raises(TooBig, match="more than 100 elements"), parameter_cap(100):
            Heavy(*sizes)
    with pytest.raises(TooBig), parameter_cap(100):
        [Heavy(60, 0) for _ in range(2)]
    Heavy(1000, 1000)  # no cap outside
