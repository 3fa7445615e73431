"""Tensor descriptors as kernel arguments, with a fake driver library that records the calls."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from kernelquarry.pipeline.sandbox.cuda import Cuda, Fault, Function
from kernelquarry.pipeline.sandbox.tensor_map import MAP, MAP_ALIGNMENT, MAP_BYTES, Tiling

# bfloat16[4, 40, 24], rows of 32 elements, matrices of 48 rows, in tiles of 2 x 16 x 8 with a swizzle of 64 bytes
TILES = Tiling(9, (4, 40, 24), (48 * 64, 64), (2, 16, 8), 2, nan=True)
ADDRESS = 0x7F00_1234_5670


def numbers(pointer: Any, kind: Any, count: int) -> list[int]:
    return list((kind * count).from_address(ctypes.addressof(pointer)))


class Library:
    """A fake `libcuda.so.1`. `sizes` are the sizes of the kernel's parameters in bytes."""

    def __init__(self, sizes: list[int], status: int = 0) -> None:
        self.sizes, self.status = sizes, status
        self.encoded: dict[str, Any] = {}
        self.launched: list[bytes] = []

    def cuTensorMapEncodeTiled(self, target: Any, *given: Any) -> int:
        room = target._obj
        element, rank, address, shape, strides, block, steps, interleave, swizzle, promotion, fill = given
        kinds = [ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p, *[ctypes.c_int] * 4]
        scalars = [element, rank, address, interleave, swizzle, promotion, fill]
        assert [type(value) for value in scalars] == kinds
        self.encoded = {
            "aligned": ctypes.addressof(room) % MAP_ALIGNMENT == 0 and len(room) == MAP_BYTES,
            "scalars": [value.value for value in scalars],
            "shape": numbers(shape, ctypes.c_uint64, rank.value),
            "strides": numbers(strides, ctypes.c_uint64, rank.value - 1),
            "block": numbers(block, ctypes.c_uint32, rank.value),
            "steps": numbers(steps, ctypes.c_uint32, rank.value),
        }
        room[:] = bytes(range(MAP_BYTES))
        return self.status

    def cuFuncGetParamInfo(self, function: Any, index: Any, offset: Any, size: Any) -> int:
        if index.value >= len(self.sizes):
            return 1
        size._obj.value = self.sizes[index.value]
        return 0

    def cuLaunchKernel(self, *given: Any) -> int:
        self.launched = [ctypes.string_at(given[9][i], size) for i, size in enumerate(self.sizes)]
        return 0

    def cuGetErrorName(self, status: int, text: Any) -> int:
        text._obj.value = b"CUDA_ERROR_INVALID_VALUE"
        return 0


def launch(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = Cuda.__new__(Cuda)  # without a device
    cuda._driver = library  # type: ignore[assignment]
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: SimpleNamespace(cuda_stream=0))
    function = Function("tiles", 4, 0, (0, 0), ctypes.c_void_p(), ctypes.c_void_p())
    cuda.start(function, (1, 1, 1), [(MAP, (ADDRESS, TILES)), ("i32", 5)])


def test_the_driver_gets_the_innermost_dimension_first(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library([128, 4, 8, 8])
    launch(library, monkeypatch)
    assert library.encoded == {
        "aligned": True,
        "scalars": [9, 3, ADDRESS, 0, 2, 2, 1],
        "shape": [24, 40, 4],
        "strides": [64, 48 * 64],
        "block": [8, 16, 2],
        "steps": [1, 1, 1],
    }


def test_a_kernel_takes_the_map_by_value(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library([128, 4, 8, 8])
    launch(library, monkeypatch)
    assert library.launched == [bytes(range(128)), b"\5\0\0\0", bytes(8), bytes(8)]


def test_a_kernel_that_takes_a_pointer_gets_no_map(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Fault, match="other arguments"):
        launch(Library([8, 4, 8, 8]), monkeypatch)


def test_a_refusal_of_the_driver_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Fault, match="cuTensorMapEncodeTiled: CUDA_ERROR_INVALID_VALUE"):
        launch(Library([128, 4, 8, 8], status=1), monkeypatch)


def test_the_extent_ends_with_the_last_element() -> None:
    assert TILES.extent == 3 * 48 * 64 + 39 * 64 + 24 * 2
    assert TILES.within(16, TILES.extent + 16)
    assert not TILES.within(16, TILES.extent + 15)
    assert not TILES.within(8, TILES.extent + 16)
    assert Tiling(7, (3,), (), (4,), 0, nan=False).extent == 12


@pytest.mark.parametrize(
    "change",
    [
        {"element": 13},
        {"element": -1},
        {"element": 2, "nan": True},
        {"shape": (4, 40)},
        {"shape": (4, 40, 0)},
        {"shape": (4, 40, 2**32 + 1)},
        {"strides": (64,)},
        {"strides": (64, 24)},
        {"strides": (2**40, 64)},
        {"strides": (-64, 64)},
        {"block": (2, 16)},
        {"block": (2, 0, 8)},
        {"block": (2, 257, 8)},
        {"block": (2, 16, 4)},
        {"swizzle": 7},
        {"shape": (1,) * 6, "strides": (16,) * 5, "block": (8,) * 6},
        {"shape": (), "strides": (), "block": ()},
    ],
    ids=str,
)
def test_malformed_tilings_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="no tensor map"):
        replace(TILES, **change)
