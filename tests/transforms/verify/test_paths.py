"""Loops in paths through forward."""

from __future__ import annotations

import pytest

from kernelquarry.pipeline.schema.records import TensorSpec, Workload
from kernelquarry.transforms.verify.paths import is_longer_loop


def of(steps: int, batch: int = 2) -> Workload:
    return Workload((TensorSpec("x", (steps, batch, 8), "float32"),), '[{"tensor":0}]')


def path(times: int) -> list[str]:
    return ["fill", *["add", "launch a"] * times, "stack"]


TRIED = [(path(5), of(5)), (path(3), of(3))]


@pytest.mark.parametrize("times", [1, 4, 400])
def test_a_loop_may_iterate_over_an_axis(times: int) -> None:
    assert is_longer_loop(path(times), of(times), TRIED)


def test_a_loop_may_iterate_over_two_axes() -> None:
    tried = [(path(6), of(3, 2)), (path(4), of(4, 1))]
    assert is_longer_loop(path(35), of(5, 7), tried)
    assert not is_longer_loop(path(36), of(5, 7), tried)


@pytest.mark.parametrize(
    "other",
    [
        path(401),
        [*path(400), "launch a"],
        [*path(400), "launch b"],
        [*path(200)[:-1], "launch b", *path(199)[1:]],
        ["launch b", *path(400)[1:]],
        path(400)[:-1],
        [],
    ],
)
def test_nothing_else_may_differ(other: list[str]) -> None:
    assert not is_longer_loop(other, of(400), TRIED)


def test_calls_may_have_other_ranks() -> None:
    flat = Workload((TensorSpec("x", (3, 8), "float32"),), '[{"tensor":0}]')
    assert is_longer_loop(path(400), of(400), [(path(5), of(5)), (path(3), flat)])


def test_two_trials_must_confirm_the_axis() -> None:
    assert not is_longer_loop(path(400), of(400), TRIED[:1])
    assert not is_longer_loop(path(400), of(400), [(path(5), of(5)), (path(5), of(3))])
    assert not is_longer_loop(["launch a"] * 2, of(400), [(["launch a"], of(5)), (["launch a"], of(3))])
