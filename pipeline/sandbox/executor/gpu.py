"""A CUDA device through its driver's own library: binaries are loaded and launched, and nothing is compiled."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .program import Kernel
from .replay import Fault

# Attributes of a function and of a device, as `cuda.h` numbers them.
_MAX_THREADS, _STATIC_SHARED, _DYNAMIC_SHARED = 0, 1, 8
_OPTIN_SHARED = 97
_PLAIN_SHARED = 48 << 10  # bytes that every kernel may have
_MAX_SCRATCH = 1 << 30  # bytes
_STICKY = frozenset({700, 702, 709, 710, 713, 714, 715, 716, 717, 718, 719})  # after these the context is of no use
_WARP = 32
_DRIVER = Path("/sys/module/nvidia/version")
_TYPES: Mapping[str, Any] = {
    "*": ctypes.c_uint64, "i1": ctypes.c_uint8, "u1": ctypes.c_uint8, "i8": ctypes.c_int8, "u8": ctypes.c_uint8,
    "i16": ctypes.c_int16, "u16": ctypes.c_uint16, "i32": ctypes.c_int32, "u32": ctypes.c_uint32,
    "i64": ctypes.c_int64, "u64": ctypes.c_uint64, "fp32": ctypes.c_float, "fp64": ctypes.c_double,
}  # fmt: skip


class Gpu:
    """One CUDA device. Only this process's own code decides what is launched on it, and with what."""

    def __init__(self, ordinal: int = 0) -> None:
        """Raises RuntimeError: there is no such device."""
        if ordinal >= torch.cuda.device_count():
            raise RuntimeError("torch finds no such GPU: a CUDA build of torch and its driver are needed")
        self.memory = torch.device("cuda", ordinal)
        torch.cuda.set_device(self.memory)
        torch.zeros(1, device=self.memory)  # makes the context that the driver's calls below act on
        self._driver = ctypes.CDLL("libcuda.so.1")
        self._modules: list[ctypes.c_void_p] = []
        self._functions: dict[Kernel, ctypes.c_void_p] = {}
        optin = ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.byref(optin), _OPTIN_SHARED, ordinal)
        self._optin_shared = optin.value

    def describe(self) -> dict[str, str]:
        """Its name, the compilation target, and the version of the driver: its own, else of the CUDA that it offers."""
        properties = torch.cuda.get_device_properties(self.memory)
        version = ctypes.c_int()
        self._call("cuDriverGetVersion", ctypes.byref(version))
        driver = (
            _DRIVER.read_text().strip()
            if _DRIVER.exists()
            else f"CUDA {version.value // 1000}.{version.value % 1000 // 10}"
        )
        return {"name": properties.name, "target": f"sm_{properties.major}{properties.minor}", "driver": driver}

    def load(self, kernels: Sequence[Kernel], binaries: Mapping[str, Tensor]) -> None:
        """Make `kernels` launchable, in place of those before. `binaries`: sha256 -> bytes.

        Raises:
            Fault: a binary is missing, is no binary, or needs more than the device has.
        """
        self.unload()
        for kernel in kernels:
            data = bytes(binaries[kernel.sha256].numpy()) if kernel.sha256 in binaries else b""
            if hashlib.sha256(data).hexdigest() != kernel.sha256:
                raise Fault(f"{kernel.name} has no binary")
            module, function = ctypes.c_void_p(), ctypes.c_void_p()
            self._call("cuModuleLoadData", ctypes.byref(module), data)
            self._modules.append(module)
            self._call("cuModuleGetFunction", ctypes.byref(function), module, kernel.name.encode())
            self._prepare(kernel, function)
            self._functions[kernel] = function

    def _prepare(self, kernel: Kernel, function: ctypes.c_void_p) -> None:
        shared = self._attribute(function, _STATIC_SHARED) + kernel.shared
        if shared > self._optin_shared:
            raise Fault(f"{kernel.name} needs {shared} bytes of shared memory, of {self._optin_shared}")
        if kernel.warps * _WARP > self._attribute(function, _MAX_THREADS):
            raise Fault(f"{kernel.name} cannot run {kernel.warps} warps")
        if kernel.shared > _PLAIN_SHARED:
            self._call("cuFuncSetAttribute", function, _DYNAMIC_SHARED, kernel.shared)

    def unload(self) -> None:
        self._functions.clear()
        for module in self._modules:
            self._call("cuModuleUnload", module)
        self._modules.clear()

    def launch(self, kernel: Kernel, grid: tuple[int, int, int], arguments: Sequence[tuple[str, int | float]]) -> None:
        """See `replay.Device`. The binary takes two more pointers than the kernel has: to scratch memory."""
        blocks = grid[0] * grid[1] * grid[2]
        scratch = [self._scratch(kernel, blocks * size) for size in kernel.scratch]
        packed = [_packed(kind, value) for kind, value in arguments]
        packed += [_packed("*", 0 if buffer is None else buffer.data_ptr()) for buffer in scratch]
        self._check_parameters(kernel, packed)
        pointers = (ctypes.c_void_p * len(packed))(*(ctypes.addressof(value) for value in packed))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        threads = _WARP * kernel.warps
        function = self._functions[kernel]
        self._call("cuLaunchKernel", function, *grid, threads, 1, 1, kernel.shared, stream, pointers, None)

    def _scratch(self, kernel: Kernel, size: int) -> Tensor | None:
        if size > _MAX_SCRATCH:
            raise Fault(f"{kernel.name} needs {size} bytes of scratch memory")
        return torch.empty(size, dtype=torch.uint8, device=self.memory) if size else None

    def _check_parameters(self, kernel: Kernel, packed: Sequence[ctypes.Array[Any]]) -> None:
        """The driver copies as much as the binary says from where it is told, so both must agree."""
        offset, size = ctypes.c_size_t(), ctypes.c_size_t()
        for index, value in enumerate(packed):
            found = self._driver.cuFuncGetParamInfo(
                self._functions[kernel], ctypes.c_size_t(index), ctypes.byref(offset), ctypes.byref(size)
            )
            if found or size.value != len(value):
                raise Fault(f"{kernel.name} takes other arguments than it was launched with")
        if not self._driver.cuFuncGetParamInfo(
            self._functions[kernel], ctypes.c_size_t(len(packed)), ctypes.byref(offset), ctypes.byref(size)
        ):
            raise Fault(f"{kernel.name} takes more arguments than it was launched with")

    def synchronize(self) -> None:
        self._call("cuCtxSynchronize")

    def _attribute(self, function: ctypes.c_void_p, attribute: int) -> int:
        value = ctypes.c_int()
        self._call("cuFuncGetAttribute", ctypes.byref(value), attribute, function)
        return value.value

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._driver, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self._driver.cuGetErrorName(status, ctypes.byref(text))
            raise Fault(f"{name}: {(text.value or b'unknown').decode()}", poisoned=status in _STICKY)


def _packed(kind: str, value: int | float) -> ctypes.Array[Any]:
    """A number as the kernel's parameter holds it."""
    if kind in ("fp16", "bf16"):
        half = torch.tensor([value], dtype=torch.float16 if kind == "fp16" else torch.bfloat16)
        data = bytes(half.view(torch.uint8).numpy())
    else:
        data = bytes(_TYPES[kind](value))
    return ctypes.create_string_buffer(data, len(data))
