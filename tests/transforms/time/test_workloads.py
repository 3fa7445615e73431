"""Calls that are large enough to be timed."""

from __future__ import annotations

import math

import pytest
from factories import make_workload

from kernelquarry.pipeline.schema.records import TensorSpec, Workload
from kernelquarry.transforms.time.workloads import calls_to_time

ELEMENTS = 1 << 20


def shapes(workload: Workload) -> list[tuple[int, ...]]:
    return [spec.shape for spec in workload.tensors]


def first(*workloads: Workload) -> Workload:
    return calls_to_time(workloads, ELEMENTS)[0]


def test_the_batch_grows_first() -> None:
    assert shapes(first(make_workload(4, 8, 512), make_workload(3, 8, 512))) == [(256, 8, 512)]


def test_other_sizes_grow_evenly_when_the_batch_is_large() -> None:
    workloads = [make_workload(2, 3, 16, 20), make_workload(3, 3, 18, 22)]
    ((batch, channels, height, width),) = shapes(first(*workloads))
    assert (batch, channels) == (128, 3)
    assert {height // 16, width // 20} == {2, 4} and (height % 16, width % 20) == (0, 0)


def test_the_batch_grows_further_when_the_other_sizes_are_long() -> None:
    ((batch, length),) = shapes(first(make_workload(2, 100), make_workload(3, 90)))
    assert length == 6400 and batch == 128
    calls = calls_to_time([make_workload(2, 100), make_workload(3, 90)], 1 << 24)
    assert shapes(calls[0]) == [(2048, 6400)]


@pytest.mark.parametrize("elements", [1 << 10, 1 << 20, 1 << 25])
def test_the_first_call_has_over_half_of_the_allowed_elements(elements: int) -> None:
    calls = calls_to_time([make_workload(2, 3, 16, 20), make_workload(3, 3, 18, 22)], elements)
    sizes = [math.prod(shapes(call)[0]) for call in calls]
    assert max(sizes[:-1], default=0) <= max(elements, sizes[-1])
    assert sizes[0] > elements / 2 or elements < 2 * sizes[-1]


def test_equal_sizes_stay_equal() -> None:
    def call(batch: int, length: int) -> Workload:
        specs = (TensorSpec("x", (batch, length, 8), "float32"), TensorSpec("mask", (batch, length), "bool"))
        return Workload(specs, '[{"tensor":0},{"tensor":1}]')

    x, mask = shapes(first(call(2, 16), call(3, 12)))
    assert x[:2] == mask and math.prod(x) > ELEMENTS / 4


def test_smaller_calls_follow_and_the_row_s_call_is_last() -> None:
    workloads = (make_workload(2, 16), make_workload(3, 12))
    calls = calls_to_time(workloads, ELEMENTS)
    assert calls[-1] == workloads[0] and len(set(calls)) == len(calls)
    alone = [call for call in calls[:-1] if shapes(call)[0][1] == 16]
    assert alone and shapes(alone[0]) == [(1 << 16, 16)]  # where the length has a bound
    assert calls == calls_to_time(workloads, ELEMENTS)


@pytest.mark.parametrize(
    "workloads",
    [
        (make_workload(4, 8), make_workload(4, 8)),
        (make_workload(4, 8),),
        (Workload((), "[3]"), Workload((), "[3]")),
        (make_workload(0, 8), make_workload(0, 9)),
    ],
)
def test_a_row_without_free_sizes_keeps_its_call(workloads: tuple[Workload, ...]) -> None:
    assert calls_to_time(workloads, ELEMENTS) == [workloads[0]]
