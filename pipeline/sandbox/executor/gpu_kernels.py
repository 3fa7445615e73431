"""The GPU of an executor, with the kernels of a program loaded by the hashes of their binaries."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial

import torch
from torch import Tensor

from kernelquarry.pipeline.sandbox.cuda import Argument, Cuda, Fault, Function, exclusive_use

from .program import Kernel


class Gpu(Cuda):
    """A `replay_program.Device`. Only trusted code decides what is launched on it, and with which arguments."""

    def __init__(self, ordinal: int) -> None:
        """Make this GPU the only one that torch sees. `ordinal` is the driver's number of the GPU.

        Raises RuntimeError if there is no such GPU.
        """
        os.environ["CUDA_VISIBLE_DEVICES"] = str(ordinal)
        super().__init__(torch.device("cuda", 0))
        self._ordinal = ordinal
        self._functions: dict[Kernel, Function] = {}

    def load(self, kernels: Sequence[Kernel], binaries: Mapping[str, Tensor]) -> None:
        """See `replay_program.Device`."""
        for function in self._functions.values():
            self.unload(function)
        self._functions = {}
        for kernel in kernels:
            binary = bytes(binaries[kernel.sha256].numpy()) if kernel.sha256 in binaries else b""
            if hashlib.sha256(binary).hexdigest() != kernel.sha256:
                raise Fault(f"{kernel.name} has no binary")
            function = self.load_binary(binary, kernel.symbol, kernel.warps, kernel.shared, kernel.scratch)
            self._functions[kernel] = function

    def prepare(self, kernel: Kernel, grid: tuple[int, int, int], arguments: Sequence[Argument]) -> Callable[[], None]:
        """See `replay_program.Device`."""
        return partial(self.launch, self.pack(self._functions[kernel], grid, arguments))

    def exclusive_use(self) -> AbstractContextManager[None]:
        """See `replay_program.Device`."""
        return exclusive_use(self._ordinal)
