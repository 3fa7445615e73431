"""A simulated GPU: kernels are Python functions that get real addresses and access real memory."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kernelquarry.pipeline.sandbox.cuda import Fault
from kernelquarry.pipeline.sandbox.executor.program import Kernel


def floats(address: int, count: int) -> np.ndarray:
    """float32 values at an address."""
    return np.ctypeslib.as_array((ctypes.c_float * count).from_address(address))


class Double:
    """A simulated GPU. `functions` maps a kernel's name to a function of the grid and the arguments."""

    memory = torch.device("cpu")

    def __init__(self, functions: Mapping[str, Callable[..., None]]) -> None:
        self.functions = functions
        self.turns = 0  # that were taken to measure
        self.loaded: list[str] = []

    def load(self, kernels: Sequence[Kernel], binaries: Mapping[str, Tensor]) -> None:
        for kernel in kernels:
            if kernel.sha256 not in binaries:
                raise Fault(f"{kernel.name} has no binary")
        self.loaded = [kernel.name for kernel in kernels]

    def prepare(
        self, kernel: Kernel, grid: tuple[int, int, int], arguments: Sequence[tuple[str, Any]]
    ) -> Callable[[], None]:
        return partial(self.functions[kernel.name], grid, *(value for _, value in arguments))

    def synchronize(self) -> None:
        pass

    @contextlib.contextmanager
    def exclusive_use(self) -> Iterator[None]:
        self.turns += 1
        yield
