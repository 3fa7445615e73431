"""Launching on a GPU from a guest: Triton compiles, and the driver's library launches, without a C compiler."""

from __future__ import annotations

import os
from typing import Any

import torch

from kernelquarry.pipeline.sandbox.cuda import Argument, Cuda, Fault, Function
from kernelquarry.pipeline.sandbox.tensor_map import MAP

from ..candidate.launch_log import session
from . import autotune
from .compile_only_driver import BEFORE_ARGUMENTS, CompileOnlyDriver, beyond_a_grid, flat, scratch_bytes


def meet(ordinal: int) -> Cuda:
    """Open the GPU of the driver's number, from now on the only one that torch and Triton see. TF32 is off."""
    os.environ["CUDA_VISIBLE_DEVICES"] = str(ordinal)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    Launcher.cuda = Cuda(torch.device("cuda", 0))
    GpuDriver([Launcher.cuda.target]).activate()
    autotune.install(session.unseen)
    return Launcher.cuda


class Launcher:
    """Launches by the driver's library, as executors do: Triton's own launcher would have to be compiled in C.

    Launches are recorded. In a ghost replay they are recorded but not executed.
    """

    cuda: Cuda
    _functions: dict[bytes, Function] = {}

    def __init__(self, source: Any, metadata: Any) -> None:
        self._metadata, self._signature = metadata, list(source.signature.values())

    def __call__(self, x: int, y: int, z: int, stream: int, binary: bytes, *rest: Any) -> None:
        if not session.skip and x * y * z:
            self.cuda.enter()
            self.cuda.start(self._function(binary), (x, y, z), self._arguments(rest))
        if x * y * z:  # else Triton launches nothing
            session.launches.append((self._metadata.name, (x, y, z)))

    def _function(self, binary: bytes) -> Function:
        if binary not in self._functions:
            found = self._metadata
            if needed := beyond_a_grid(found):
                raise Fault(f"{needed}, which guests do not give")
            loaded = self.cuda.load_binary(binary, found.name, found.num_warps, found.shared, scratch_bytes(found))
            self._functions[binary] = loaded
        return self._functions[binary]

    def _arguments(self, rest: tuple[Any, ...]) -> list[Argument]:
        return [_argument(*given) for given in flat(self._signature, rest[BEFORE_ARGUMENTS:], self._metadata)]


def _argument(kind: str, value: Any) -> Argument:
    if kind == MAP:
        base, tiling = value
        return MAP, (_argument("*", base)[1], tiling)
    if kind.startswith("*") and hasattr(value, "data_ptr"):  # as Triton: a tensor, or an object that wraps one
        if isinstance(value, torch.Tensor) and value.device.type != "cuda":
            raise TypeError(f"a kernel was given a tensor on {value.device}")
        return "*", value.data_ptr()
    if isinstance(value, bool | int) and kind[:1] in "iu":
        return kind, int(value)
    if isinstance(value, bool | int | float) and kind.startswith(("fp", "bf")):
        return kind, float(value)
    raise TypeError(f"a kernel takes a {type(value).__name__} as {kind}")


class GpuDriver(CompileOnlyDriver):
    """Driver of the one GPU that the guest sees."""

    launcher_cls = Launcher

    def get_current_stream(self, device: int | None = None) -> int:
        return int(torch.cuda.current_stream().cuda_stream)

    def get_active_torch_device(self) -> torch.device:
        return Launcher.cuda.memory

    def get_device_interface(self) -> Any:
        return torch.cuda

    def get_empty_cache_for_benchmark(self) -> torch.Tensor:
        """Memory for Inductor, which times several configurations of some kernels."""
        return torch.empty(64 << 20, dtype=torch.int32, device=Launcher.cuda.memory)

    def clear_cache(self, cache: torch.Tensor) -> None:
        cache.zero_()
