"""The host validates a guest's traced program, and refuses every form that could harm a GPU."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from traced_programs import doubled_sum, kernel, view

from kernelquarry.pipeline.sandbox.executor.program import (
    Descriptor,
    Launch,
    Number,
    Pointer,
    read_kernels,
    read_program,
)
from kernelquarry.pipeline.sandbox.observation import MalformedReply
from kernelquarry.pipeline.sandbox.tensor_map import Tiling


def test_a_program_is_read() -> None:
    program = read_program(doubled_sum(), 2)
    assert program.storages == (24, 24, 24, 24) and program.constants == ()
    assert program.named["input.0"].shape == (6,) and program.named["input.0"].dtype == torch.float32
    first, second = program.steps
    assert isinstance(first, Launch) and first.arguments[3] == Number("i32", 6)
    assert isinstance(second, Launch) and second.arguments == (
        Pointer(2, 0), Pointer(3, 0), Number("i32", 6), Number("fp32", 2.0),
    )  # fmt: skip
    assert program.launches == [(0, (1, 1, 1)), (1, (1, 1, 1))]


def changed(path: tuple[Any, ...], value: Any) -> Callable[[], dict[str, Any]]:
    def make() -> dict[str, Any]:
        claim = copy.deepcopy(doubled_sum())
        place: Any = claim
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        return claim

    return make


FIRST = ("steps", 0)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("storages", 0, "bytes"), -1, "out of range"),
        (("storages", 0, "bytes"), 2**63, "out of range"),
        (("storages", 0, "bytes"), 24.0, "expected int"),
        (("named", "input.0", "storage"), 4, "past its end"),
        (("named", "input.0", "offset"), 1, "past its end"),
        (("named", "input.0", "strides"), [2], "past its end"),
        (("named", "input.0", "strides"), [-1], "out of range"),
        (("named", "input.0", "shape"), [7], "past its end"),
        (("named", "input.0", "dtype"), "float64", "past its end"),
        (("named", "input.0", "dtype"), "load", "no dtype"),
        (("named", "input.0", "strides"), [1, 1], "other strides"),
        (("outputs", 0, "offset"), 10**30, "out of range"),
        ((*FIRST, "launch"), 2, "no kernel"),
        ((*FIRST, "launch"), True, "expected int"),
        ((*FIRST, "grid"), [1, 1], "on no grid"),
        ((*FIRST, "grid"), [2**31, 1, 1], "grid"),
        ((*FIRST, "grid"), [1, 65536, 1], "grid"),
        ((*FIRST, "grid"), [-1, 1, 1], "out of range"),
        ((*FIRST, "arguments", 0), ["*", 0, 25], "past its end"),
        ((*FIRST, "arguments", 0), ["*", 9, 0], "no storage"),
        ((*FIRST, "arguments", 0), ["*", 0, -8], "out of range"),
        ((*FIRST, "arguments", 3), ["i32", 2**31], "as i32"),
        ((*FIRST, "arguments", 3), ["u8", -1], "as u8"),
        ((*FIRST, "arguments", 3), ["i32", "0x1p+1"], "as i32"),
        ((*FIRST, "arguments", 3), ["fp32", 2], "as fp32"),
        ((*FIRST, "arguments", 3), ["fp32", "two"], "no number"),
        ((*FIRST, "arguments", 3), ["tensordesc", 1], "as tensordesc"),
        (("steps", 0), {"run": "rm"}, "a step of"),
        (("steps", 0), {"copy": view(0, [3]), "from": view(1, [2])}, "two shapes"),
        (("steps", 0), {"fill": view(0, [7]), "value": 0}, "past its end"),
        (("outputs",), {}, "expected list"),
    ],
)
def test_inconsistent_programs_are_refused(path: tuple[Any, ...], value: Any, message: str) -> None:
    with pytest.raises(MalformedReply, match=message):
        read_program(changed(path, value)(), 2)


ROWS = {"element": 7, "shape": [2, 3], "strides": [16], "block": [2, 4], "swizzle": 0, "nan": False}  # 28 bytes


def with_descriptor(*descriptor: Any) -> dict[str, Any]:
    claim = changed((*FIRST, "arguments", 0), ["nvTmaDesc", *descriptor])()
    claim["storages"][0]["bytes"] = 44
    return claim


def test_a_tensor_descriptor_is_read() -> None:
    (launch, _) = read_program(with_descriptor(0, 16, ROWS), 2).steps
    assert isinstance(launch, Launch)
    assert launch.arguments[0] == Descriptor(Pointer(0, 16), Tiling(7, (2, 3), (16,), (2, 4), 0, nan=False))


@pytest.mark.parametrize(
    ("descriptor", "message"),
    [
        ([1, 16, ROWS], "past its storage's end"),
        ([0, 32, ROWS], "past its storage's end"),
        ([0, 8, ROWS], "not aligned"),
        ([4, 0, ROWS], "no storage"),
        ([0, -16, ROWS], "out of range"),
        ([0, 0, ROWS | {"shape": [2, 8]}], "past its storage's end"),
        ([0, 0, ROWS | {"shape": [3, 4]}], "past its storage's end"),
        ([0, 0, ROWS | {"element": 8, "shape": [2, 4]}], "past its storage's end"),
        ([0, 0, ROWS | {"strides": [8]}], "no tensor map"),
        ([0, 0, ROWS | {"strides": [-16]}], "out of range"),
        ([0, 0, ROWS | {"block": [2, 1000]}], "no tensor map"),
        ([0, 0, ROWS | {"element": True}], "expected int"),
        ([0, 0, ROWS | {"nan": 1}], "expected bool"),
        ([0, 0, ROWS | {"shape": None}], "expected list"),
        ([0, 0, ROWS | {"shape": [2] * 1000}], "no tensor map"),
        ([0, 0], "2 numbers"),
        ([0, 0, []], "expected dict"),
    ],
)
def test_a_tensor_descriptor_that_reaches_too_far(descriptor: list[Any], message: str) -> None:
    with pytest.raises(MalformedReply, match=message):
        read_program(with_descriptor(*descriptor), 2)


@pytest.mark.parametrize(
    ("field", "value"),
    [("warps", 0), ("warps", 33), ("shared", -1), ("scratch", [0]), ("name", 3), ("sha256", None)],
)
def test_a_kernel_that_no_gpu_has(field: str, value: Any) -> None:
    with pytest.raises(MalformedReply):
        read_kernels([kernel("add") | {field: value}])


def test_an_empty_view_may_lie_anywhere_in_its_storage() -> None:
    claim = doubled_sum()
    claim["outputs"] = [view(0, [0, 5], offset=2**40, strides=[5, 1])]
    assert read_program(claim, 2).outputs[0].shape == (0, 5)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["fill", "copy", "*"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from([*doubled_sum(), "bytes"]), inner),
)


@given(JSON, st.sampled_from(["storages", "named", "steps", "outputs"]))
def test_anything_else_is_refused_in_one_way(value: Any, field: str) -> None:
    with contextlib.suppress(MalformedReply):
        read_program(doubled_sum() | {field: value}, 2)
