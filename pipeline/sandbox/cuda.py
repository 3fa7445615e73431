"""A CUDA device through the driver's library (`libcuda`): loads and launches binaries, and compiles nothing.

Executors and guests with a GPU use it; neither needs a compiler on the machine.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor

from .tensor_map import MAP, MAP_ALIGNMENT, MAP_BYTES, Tiling

# Attributes of a function and of a device, as `cuda.h` numbers them.
_MAX_THREADS, _STATIC_SHARED, _DYNAMIC_SHARED = 0, 1, 8
_OPTIN_SHARED = 97
_PLAIN_SHARED = 48 << 10  # bytes that a kernel may use without opting in
_MAX_SCRATCH = 1 << 30  # bytes
_STICKY = frozenset({700, 702, 709, 710, 713, 714, 715, 716, 717, 718, 719})  # errors that break the context
_WARP = 32
# Half-precision operations per clock of a multiprocessor's tensor cores: its fastest floating-point arithmetic.
_FLOPS = {"sm_70": 1024, "sm_75": 1024, "sm_80": 2048, "sm_86": 1024, "sm_89": 1024, "sm_90": 4096}
_MOST_FLOPS = 8192
_DRIVER = Path("/sys/module/nvidia/version")
_TYPES: Mapping[str, Any] = {
    "*": ctypes.c_uint64, "i1": ctypes.c_uint8, "u1": ctypes.c_uint8, "i8": ctypes.c_int8, "u8": ctypes.c_uint8,
    "i16": ctypes.c_int16, "u16": ctypes.c_uint16, "i32": ctypes.c_int32, "u32": ctypes.c_uint32,
    "i64": ctypes.c_int64, "u64": ctypes.c_uint64, "fp32": ctypes.c_float, "fp64": ctypes.c_double,
}  # fmt: skip


# A kernel argument: Triton's name of its type, and its value: ("i32", 3), ("*", address), (MAP, (address, tiling)).
Argument: TypeAlias = tuple[str, Any]


class Fault(Exception):
    """A launch failed, or wrote outside of its buffers. `poisoned` is true if the device's context is unusable."""

    def __init__(self, message: str, poisoned: bool = False) -> None:
        super().__init__(message)
        self.poisoned = poisoned


@contextlib.contextmanager
def exclusive_use(ordinal: int, devices: Path = Path("/dev")) -> Iterator[None]:
    """Lock a GPU against other measurements. The lock is its device node, which every user of the GPU can open.

    Where device nodes have other numbers, as in some containers, all GPUs share one lock: a guest cannot list them.
    """
    node = devices / f"nvidia{ordinal}"
    with (node if node.exists() else devices / "nvidiactl").open("rb", buffering=0) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@dataclass(frozen=True, slots=True)
class Function:
    """A loaded kernel."""

    name: str
    warps: int  # of a thread block
    shared: int  # bytes of dynamic shared memory
    scratch: tuple[int, int]  # bytes of global memory for each block, for the kernel and for its profile
    module: ctypes.c_void_p
    handle: ctypes.c_void_p


@dataclass(frozen=True, slots=True)
class Packed:
    """A launch with its arguments in the driver's form."""

    arguments: tuple[Any, ...]  # of `cuLaunchKernel`
    kept: tuple[Any, ...]  # objects that the arguments point to


class Cuda:
    """One CUDA device, with torch's context on it."""

    def __init__(self, device: torch.device) -> None:
        """Raises RuntimeError if there is no such device."""
        ordinal = device.index or 0
        if ordinal >= torch.cuda.device_count():
            raise RuntimeError("torch finds no such GPU: install a CUDA build of torch and the NVIDIA driver")
        self.memory = device
        torch.cuda.set_device(device)
        torch.zeros(1, device=device)  # makes the context that the driver's calls below act on
        self._driver = ctypes.CDLL("libcuda.so.1")
        optin = ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.byref(optin), _OPTIN_SHARED, ordinal)
        self._optin_shared = optin.value
        self._context = ctypes.c_void_p()
        self._call("cuCtxGetCurrent", ctypes.byref(self._context))

    def enter(self) -> None:
        """Make the context that of this thread: autograd calls `backward` in a thread of its own."""
        self._call("cuCtxSetCurrent", self._context)

    @property
    def target(self) -> str:
        """The compilation target, "sm_90"."""
        major, minor = torch.cuda.get_device_capability(self.memory)
        return f"sm_{major}{minor}"

    def describe(self) -> dict[str, str | float]:
        """The fields of a `GpuDescription`. Where the driver's version is unknown, its CUDA version stands for it."""
        version = ctypes.c_int()
        self._call("cuDriverGetVersion", ctypes.byref(version))
        offered = f"CUDA {version.value // 1000}.{version.value % 1000 // 10}"
        driver = _DRIVER.read_text().strip() if _DRIVER.exists() else offered
        found = torch.cuda.get_device_properties(self.memory)
        product = _FLOPS.get(self.target, _MOST_FLOPS)
        return {
            "name": found.name,
            "target": self.target,
            "driver": driver,
            "bandwidth": 2 * 1e3 * found.memory_clock_rate * found.memory_bus_width / 8,  # clocks are in kHz
            "peak": 1e3 * found.clock_rate * found.multi_processor_count * product,
            "cache": found.L2_cache_size,
            "memory": found.total_memory,
        }

    def load_binary(self, binary: bytes, name: str, warps: int, shared: int, scratch: tuple[int, int]) -> Function:
        """Make a kernel launchable.

        Raises:
            Fault: the binary is not for this device, or needs more than the device has.
        """
        module, handle = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("cuModuleLoadData", ctypes.byref(module), binary)
        self._call("cuModuleGetFunction", ctypes.byref(handle), module, name.encode())
        needed = self._attribute(handle, _STATIC_SHARED) + shared
        if needed > self._optin_shared:
            raise Fault(f"{name} needs {needed} bytes of shared memory, of {self._optin_shared}")
        if warps * _WARP > self._attribute(handle, _MAX_THREADS):
            raise Fault(f"{name} cannot run {warps} warps")
        if shared > _PLAIN_SHARED:
            self._call("cuFuncSetAttribute", handle, _DYNAMIC_SHARED, shared)
        return Function(name, warps, shared, scratch, module, handle)

    def unload(self, function: Function) -> None:
        self._call("cuModuleUnload", function.module)

    def start(self, function: Function, grid: tuple[int, int, int], arguments: Sequence[Argument]) -> None:
        """Launch on the current stream. Raises as `pack` and `launch` do."""
        self.launch(self.pack(function, grid, arguments))

    def pack(self, function: Function, grid: tuple[int, int, int], arguments: Sequence[Argument]) -> Packed:
        """Prepare a launch on the current stream, which `launch` can repeat at little cost.

        The binary takes two more pointers than the kernel, to scratch memory.

        Raises:
            Fault: the arguments do not match the binary's parameters.
        """
        blocks = grid[0] * grid[1] * grid[2]
        scratch = [self._scratch(function, blocks * size) for size in function.scratch]
        packed = [self._map(*value) if kind == MAP else _packed(kind, value) for kind, value in arguments]
        packed += [_packed("*", 0 if buffer is None else buffer.data_ptr()) for buffer in scratch]
        self._check_parameters(function, packed)
        pointers = (ctypes.c_void_p * len(packed))(*(ctypes.addressof(value) for value in packed))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        shape = (*grid, _WARP * function.warps, 1, 1)
        return Packed((function.handle, *shape, function.shared, stream, pointers, None), (packed, scratch))

    def launch(self, packed: Packed) -> None:
        """Launch it. Raises `Fault` if the launch fails."""
        self._call("cuLaunchKernel", *packed.arguments)

    def _map(self, address: int, tiling: Tiling) -> ctypes.Array[Any]:
        """Encode a tensor descriptor, which a kernel takes by value."""
        room = ctypes.create_string_buffer(MAP_BYTES + MAP_ALIGNMENT)
        result = (ctypes.c_char * MAP_BYTES).from_buffer(room, -ctypes.addressof(room) % MAP_ALIGNMENT)
        self._call("cuTensorMapEncodeTiled", ctypes.byref(result), *tiling.encoding(address))
        return result

    def _scratch(self, function: Function, size: int) -> Tensor | None:
        if size > _MAX_SCRATCH:
            raise Fault(f"{function.name} needs {size} bytes of scratch memory")
        return torch.empty(size, dtype=torch.uint8, device=self.memory) if size else None

    def _check_parameters(self, function: Function, packed: Sequence[ctypes.Array[Any]]) -> None:
        """Check number and sizes of the arguments: the driver copies as many bytes as the binary's parameters have."""
        offset, size = ctypes.c_size_t(), ctypes.c_size_t()
        for index, value in enumerate(packed):
            found = self._driver.cuFuncGetParamInfo(
                function.handle, ctypes.c_size_t(index), ctypes.byref(offset), ctypes.byref(size)
            )
            if found or size.value != len(value):
                raise Fault(f"{function.name} takes other arguments than it was launched with")
        if not self._driver.cuFuncGetParamInfo(
            function.handle, ctypes.c_size_t(len(packed)), ctypes.byref(offset), ctypes.byref(size)
        ):
            raise Fault(f"{function.name} takes more arguments than it was launched with")

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
    """The bytes of a number as a kernel's parameter."""
    if kind in ("fp16", "bf16"):
        half = torch.tensor([value], dtype=torch.float16 if kind == "fp16" else torch.bfloat16)
        data = bytes(half.view(torch.uint8).numpy())
    else:
        data = bytes(_TYPES[kind](value))
    return ctypes.create_string_buffer(data, len(data))
