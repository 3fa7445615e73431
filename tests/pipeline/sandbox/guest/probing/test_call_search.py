"""The search for a call that runs, and for other sizes at which it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from kernelquarry.pipeline.sandbox.guest.probing import call_search as searching
from kernelquarry.pipeline.sandbox.guest.probing.call_search import Caller, search, smaller, variations
from kernelquarry.pipeline.sandbox.guest.probing.guarded_call import Failure, Unfit
from kernelquarry.pipeline.sandbox.guest.probing.guess import SIZES, Guess, TensorArg


class Function(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function
        self.calls: list[tuple[tuple[int, ...], torch.dtype]] = []

    def forward(self, x: Tensor, *others: Tensor) -> Any:
        self.calls.append((tuple(x.shape), x.dtype))
        return self.function(x, *others)


def guess(*dims: str, **tensor: Any) -> Guess:
    return Guess((TensorArg("x", dims, **tensor),), tuple(SIZES[0].items()))


def caller(function: Callable[..., Any]) -> Caller:
    return Caller(Function(function), __file__)


def shapes(guesses: list[Guess]) -> list[tuple[int, ...]]:
    return [g.specs()[0].shape for g in guesses]


IMAGE, ROWS = guess("B", "C", "H", "W"), guess("B", "C")


def test_the_first_guess_that_runs_is_returned() -> None:
    assert search(caller(lambda x: x), [ROWS, IMAGE], {}, lambda g: g) == ROWS
    assert search(caller(lambda x: x.permute(0, 3, 1, 2)), [ROWS, IMAGE], {}, lambda g: g) == IMAGE


def test_a_failed_guess_is_repaired() -> None:
    found = search(caller(nn.Sequential(nn.Conv2d(6, 8, 1), nn.Conv2d(8, 8, 1))), [IMAGE], {}, lambda g: g)
    assert isinstance(found, Guess) and found.specs()[0].shape == (2, 6, 12, 20)


def test_the_failure_that_got_furthest_is_returned() -> None:
    class Steps(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            if x.shape != (2, 16, 12, 20):
                raise ValueError("shape")
            raise ValueError("further")

    failure = search(Caller(Steps(), __file__), [ROWS, IMAGE, guess("L")], {}, lambda g: g)
    assert isinstance(failure, Failure) and str(failure) == "ValueError: further"


def test_guesses_are_distinct_and_the_search_ends() -> None:
    module = Function(lambda x: 1 / 0)
    failure = search(Caller(module, __file__), [IMAGE, IMAGE, ROWS], {}, lambda g: g)
    assert isinstance(failure, Failure)
    assert 2 < len(set(module.calls)) == len(module.calls) < 200


def test_a_search_ends_after_its_calls_or_sooner_if_inputs_are_large() -> None:
    def calls(batch: int, max_calls: int) -> int:
        module = Function(lambda x: 1 / 0)
        starts = [guess("B", "C").resized({"B": batch + i}) for i in range(200)]
        search(Caller(module, __file__), starts, {}, lambda g: g, max_calls)
        return len(module.calls)

    assert calls(2, 7) == 7
    assert calls(2, 1000) > 40
    assert calls(5000, 1000) < 30


def test_only_the_repairs_that_are_tried_are_constructed(monkeypatch: pytest.MonkeyPatch) -> None:
    constructed: list[Guess] = []

    def repairs(first: Guess, *_: Any) -> Iterator[Guess]:
        for size in range(1, 20):
            constructed.append(first.resized({"B": 100 * size}))
            yield constructed[-1]

    monkeypatch.setattr(searching, "repairs", repairs)
    found = search(caller(lambda x: x if x.shape[0] >= 300 else 1 / 0), [ROWS], {}, lambda g: g)
    assert isinstance(found, Guess) and found.specs()[0].shape == (300, 16)
    assert len(constructed) < 10


def test_a_rejection_is_raised_if_no_guess_is_accepted() -> None:
    def reject(g: Guess) -> Guess:
        raise Unfit("random", f"of rank {len(g.specs()[0].shape)}")

    with pytest.raises(Unfit, match="of rank 2"):
        search(caller(lambda x: x), [ROWS, IMAGE], {}, reject)


def test_a_rejected_guess_does_not_end_the_search() -> None:
    def accept(g: Guess) -> Guess:
        if g == ROWS:
            raise Unfit("random", "")
        return g

    assert search(caller(lambda x: x), [ROWS, IMAGE], {}, accept) == IMAGE


def test_a_large_guess_is_reduced_before_the_call() -> None:
    module = Function(lambda x: x)
    search(Caller(module, __file__), [IMAGE.resized({"H": 4000, "W": 4000})], {}, lambda g: g)
    assert module.calls == [((2, 16, 6, 10), torch.float32)]


def test_a_slow_call_is_interrupted_and_unfit(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(x: Tensor) -> None:
        while True:
            x = x + 1

    monkeypatch.setattr(searching, "_SLOW_S", 0.05)
    with pytest.raises(Unfit, match=r"one forward takes more than 0\.05 s") as caught:
        caller(endless).call(ROWS)
    assert caught.value.reason == "too_big"


def test_calls_record_no_gradients() -> None:
    result, failure = Caller(nn.Linear(16, 2), __file__).call(ROWS)
    assert failure is None and not result.requires_grad


def test_smaller() -> None:
    assert shapes(list(smaller(IMAGE))) == [(2, 16, 6, 10), (2, 16, 4, 6), (2, 16, 3, 5)]
    assert list(smaller(ROWS)) == []


def quarters(x: Tensor) -> Tensor:
    return x.view(*x.shape[:2], x.shape[2] // 4, 4, x.shape[3])


def heads(x: Tensor) -> Tensor:
    return x.view(x.shape[0], x.shape[1] // 8, 8, *x.shape[2:])


@pytest.mark.parametrize(
    ("function", "first", "others"),
    [
        (lambda x: x, IMAGE, [(3, 21, 11, 23), (5, 26, 10, 14)]),
        (nn.Conv2d(16, 1, 1), IMAGE, [(3, 16, 11, 23), (5, 16, 10, 14)]),
        (quarters, IMAGE, [(3, 21, 16, 23), (5, 26, 24, 14)]),
        (heads, IMAGE, [(3, 32, 11, 23), (5, 48, 10, 14)]),
        (lambda x: x + torch.ones(2, 1), ROWS, [(2, 21), (2, 26)]),
        (lambda x: x + torch.ones(2, 16), ROWS, []),
    ],
)
def test_variations(function: Callable[..., Any], first: Guess, others: list[tuple[int, ...]]) -> None:
    called = caller(function)
    assert shapes(variations(first, lambda g: called.call(g)[1] is None)) == others
