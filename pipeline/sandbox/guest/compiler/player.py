"""Replay of a traced program in a guest with a GPU, to time it. The executor replays programs where no guest runs.

The host has validated the program (`executor/program.py`), and its verification has shown that it writes to no memory
outside of its buffers, so neither is checked here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from kernelquarry.pipeline.sandbox.cuda import Argument, Cuda, Function
from kernelquarry.pipeline.sandbox.tensor_map import MAP, Tiling

Json = dict[str, Any]


class Player:
    """The program, ready to be called; each call is one forward on the same buffers."""

    def __init__(
        self,
        program: Json,
        kernels: Sequence[Json],
        tensors: Mapping[str, Tensor],
        values: Mapping[str, Tensor],
        cuda: Cuda,
    ) -> None:
        """Load binaries (`binary.<sha256>` in `tensors`) and fill buffers: with `values`, by the program's names, and
        constants (`constant.0.<storage>`).

        Raises:
            Fault: a binary or a launch is impossible.
            torch.OutOfMemoryError: the GPU has too little for the buffers.
        """
        self._cuda = cuda
        self._storages = [
            torch.zeros(entry["bytes"], dtype=torch.uint8, device=cuda.memory) for entry in program["storages"]
        ]
        for number, storage in enumerate(self._storages):
            if program["storages"][number]["origin"] == "constant":
                storage.copy_(tensors[f"constant.0.{number}"])
        for name, view in program["named"].items():
            self._view(view).copy_(values[name])
        functions = [self._load(kernel, tensors) for kernel in kernels]
        self._steps = [self._step(step, functions) for step in program["steps"] if all(step.get("grid", [1]))]
        self.outputs = [self._view(view) for view in program["outputs"]]

    def __call__(self) -> list[Tensor]:
        for step in self._steps:
            step()
        return self.outputs

    def _load(self, kernel: Json, tensors: Mapping[str, Tensor]) -> Function:
        binary = bytes(tensors[f"binary.{kernel['sha256']}"].numpy())
        scratch = kernel["scratch"][0], kernel["scratch"][1]
        return self._cuda.load_binary(binary, kernel["symbol"], kernel["warps"], kernel["shared"], scratch)

    def _view(self, view: Json) -> Tensor:
        storage, dtype = self._storages[view["storage"]], getattr(torch, view["dtype"])
        values = storage[: storage.numel() // dtype.itemsize * dtype.itemsize].view(dtype)
        return values.as_strided(view["shape"], view["strides"], view["offset"])

    def _step(self, step: Json, functions: Sequence[Function]) -> Callable[[], Any]:
        if "fill" in step:
            return partial(self._view(step["fill"]).fill_, _number(step["value"]))
        if "copy" in step:
            return partial(self._view(step["copy"]).copy_, self._view(step["from"]))
        x, y, z = step["grid"]
        arguments = [self._argument(*argument) for argument in step["arguments"]]
        return partial(self._cuda.launch, self._cuda.pack(functions[step["launch"]], (x, y, z), arguments))

    def _argument(self, kind: str, *rest: Any) -> Argument:
        if kind == "*":
            return kind, self._address(*rest)
        if kind == MAP:
            storage, offset, tiling = rest
            shape, strides, block = (tuple(tiling[name]) for name in ("shape", "strides", "block"))
            made = Tiling(tiling["element"], shape, strides, block, tiling["swizzle"], tiling["nan"])
            return MAP, (self._address(storage, offset), made)
        return kind, _number(*rest)

    def _address(self, storage: int, offset: int) -> int:
        return self._storages[storage].data_ptr() + offset


def _number(value: int | str) -> int | float:
    return value if isinstance(value, int) else float.fromhex(value)
