"""Driver for Triton that compiles launches for its targets, and runs none."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.driver import make_tensordesc_arg
from triton.compiler import compiler
from triton.runtime.cache import CacheManager

from kernelquarry.pipeline.sandbox.tensor_map import MAP, Tiling

from ..candidate import fake_cuda

BEFORE_ARGUMENTS = 4  # of a launcher, behind the binary: packed metadata, launch metadata, two hooks
# Shared memory of a thread block that a kernel may ask for, in bytes, and the size of a warp.
SHARED_BYTES = {"sm_80": 166912, "sm_90": 232448, "sm_100": 232448, "gfx942": 65536}


def target(name: str) -> GPUTarget:
    """`sm_90` or `gfx942` as Triton writes it.

    Raises:
        ValueError: no such target is known.
    """
    if name not in SHARED_BYTES:
        raise ValueError(f"unknown target {name!r}, known are {sorted(SHARED_BYTES)}")
    if name.startswith("sm_"):
        return GPUTarget("cuda", int(name.removeprefix("sm_")), 32)
    return GPUTarget("hip", name, 64)


@dataclass(frozen=True, slots=True)
class Launch:
    """A launch, as an executor needs it to repeat it."""

    metadata: Any  # of Triton's compiler
    binary: bytes
    digest: str  # sha256 of the binary
    signature: Sequence[Any]  # type of each argument as Triton writes it; tuples are nested
    arguments: Sequence[Any]
    grid: tuple[int, int, int]


def beyond_a_grid(metadata: Any) -> str:
    """The feature of a launch that neither executors nor guests with a GPU support; "" for none."""
    for name in ("launch_cooperative_grid", "launch_pdl"):
        if getattr(metadata, name, False):
            return f"{metadata.name} needs {name}"
    clusters = getattr(metadata, "num_ctas", 1)
    return f"{metadata.name} runs in clusters of {clusters} blocks" if clusters != 1 else ""


def scratch_bytes(metadata: Any) -> tuple[int, int]:
    """Bytes of global memory for each block: for the kernel, and for its profile."""
    return getattr(metadata, "global_scratch_size", 0), getattr(metadata, "profile_scratch_size", 0)


def flat(signature: Sequence[Any], arguments: Sequence[Any], metadata: Any) -> Iterator[tuple[str, Any]]:
    """Type and value of each argument that a binary takes: those of tuples one by one, without constants.

    A tensor descriptor gives as many as Triton's own launcher makes of it. Raises `ValueError`: see `_described`.
    """
    maps = iter(getattr(metadata, "tensordesc_meta", None) or repeat(None))
    for kind, value in zip(signature, arguments, strict=True):
        if isinstance(kind, tuple):
            yield from flat(kind, value, None)
        elif kind.startswith("tensordesc"):
            yield from _described(value, next(maps))
        elif kind != "constexpr":
            yield kind, value


def _described(descriptor: Any, metadata: Any) -> Iterator[tuple[str, Any]]:
    """(MAP, (tensor, tiling)), or the pointer, the sizes and the flags that stand for it; then its sizes.

    Raises:
        ValueError: no tensor map is like this, or it reaches past the end of the tensor's memory.
    """
    first, *rest = make_tensordesc_arg(descriptor, metadata)
    rank = len(descriptor.shape)
    kinds = ["i32"] * rank + ["i64"] * rank
    if metadata is None:
        flags = len(rest) - 4 * rank
        kinds = ["*", *["i64"] * 2 * rank, *["i1"] * flags, *kinds]
    else:
        base = descriptor.base
        if not first.within(base.storage_offset() * base.element_size(), base.untyped_storage().nbytes()):
            raise ValueError("a tensor descriptor reaches past the end of its tensor")
        kinds, first = [MAP, *kinds], (base, first)
    yield from zip(kinds, [first, *rest], strict=True)


class Recorder:
    """Launcher that records the grid and the binary instead of launching."""

    launches: list[tuple[str, tuple[int, ...]]] = []
    listener: Callable[[Launch], None] | None = None  # is called with each launch

    def __init__(self, source: Any, metadata: Any) -> None:
        self._metadata = metadata
        self._signature = list(source.signature.values())

    def __call__(self, x: int, y: int, z: int, stream: int, binary: bytes, *rest: Any) -> None:
        fake_cuda.check_reachable(rest[BEFORE_ARGUMENTS:])
        metadata = self._metadata
        if 0 in (x, y, z):  # Triton launches nothing
            return
        if Recorder.listener is None and (needed := beyond_a_grid(metadata)):
            raise NotImplementedError(f"{needed}, which nothing here gives")
        Recorder.launches.append((metadata.name, (x, y, z)))
        if Recorder.listener is not None:
            digest = hashlib.sha256(binary).hexdigest()
            Recorder.listener(Launch(metadata, binary, digest, self._signature, rest[BEFORE_ARGUMENTS:], (x, y, z)))

    @classmethod
    @contextmanager
    def unseen(cls) -> Iterator[None]:
        """Compile launches without recording them."""
        listener, recorded = cls.listener, len(cls.launches)
        cls.listener = None
        try:
            yield
        finally:
            cls.listener = listener
            del cls.launches[recorded:]


class ScratchCache(CacheManager):
    """Cache that writes files to the guest's own scratch folder, without locks, and finds none."""

    def __init__(self, key: str, override: bool = False, dump: bool = False) -> None:
        self._folder = Path(key)
        self._folder.mkdir(exist_ok=True)

    def put(self, data: Any, filename: str, binary: bool = True) -> str:
        path = self._folder / filename
        data = "" if filename.endswith(".source") else data  # text of the IR before all passes, which nobody reads
        path.write_bytes(data if isinstance(data, bytes) else str(data).encode())
        return str(path)

    def get_file(self, filename: str) -> str | None:
        return None

    def get_group(self, filename: str) -> dict[str, str] | None:
        return None

    def put_group(self, filename: str, group: dict[str, str]) -> None:
        return None


class _Utils:
    """Stands in for Triton's driver utilities: returns the binary as the function, and a `Tiling` as the tensor map."""

    def __init__(self, shared: int) -> None:
        self._shared = shared

    def load_binary(self, name: str, binary: bytes, shared: int, device: int) -> tuple[None, bytes, int, int, int]:
        return None, binary, 0, 0, 1024

    def fill_tma_descriptor(
        self,
        address: int,
        swizzle: int,
        size: int,
        element: int,
        block: Sequence[int],
        shape: Sequence[int],
        strides: Sequence[int],
        padding: int,
    ) -> Tiling:
        """A tiling of elements of `size` bytes; strides are in elements. It omits the address, which varies by run."""
        rows = tuple(size * stride for stride in strides[:-1])
        return Tiling(element, tuple(shape), rows, tuple(block), swizzle, bool(padding))

    fill_tma_descriptor_tiled = fill_tma_descriptor  # its name since Triton 3.7

    def get_device_properties(self, device: int) -> dict[str, int]:
        return {"max_shared_mem": self._shared, "multiprocessor_count": 132, "warpSize": 32, "max_num_regs": 65536}


class CompileOnlyDriver:
    """Each target is a device, so that Triton keeps the kernels of targets apart."""

    launcher_cls: type[Any] = Recorder

    def __init__(self, targets: list[str]) -> None:
        self._targets = targets
        self._device = 0

    def activate(self) -> None:
        """Replace the active driver, and forget the shared memory of its devices, which Triton caches by number."""
        triton.runtime.driver.set_active(self)
        compiler.max_shared_mem.cache_clear()

    @property
    def utils(self) -> _Utils:
        return _Utils(SHARED_BYTES[self._targets[self._device]])

    def set_current_device(self, device: int) -> None:
        self._device = device

    def get_current_device(self) -> int:
        return self._device

    def get_current_stream(self, device: int | None = None) -> int:
        return 0

    def get_current_target(self) -> GPUTarget:
        return target(self._targets[self._device])

    def get_active_torch_device(self) -> torch.device:
        return fake_cuda.DEVICE

    def get_device_interface(self) -> Any:
        return torch.cpu

    @staticmethod
    def is_active() -> bool:
        return True
