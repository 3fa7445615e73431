"""Traced programs, read from a guest's claim and fully validated: replay makes no further checks.

`guest/compiler/tracer.py` writes the format. A guest may send anything; a program that passes has every view inside of
its storage, every number in the range of its type, and only grids that a GPU accepts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from kernelquarry.pipeline.sandbox.observation import MalformedReply, expect
from kernelquarry.pipeline.sandbox.tensor_map import MAP, Tiling

MAX_STORAGES = 4096
MAX_STEPS = 65536
_MAX_DIMENSIONS = 12
MAX_GRID = (2**31 - 1, 2**16 - 1, 2**16 - 1)  # of CUDA; HIP takes more
_MAX_WARPS = 32
_MAX_ARGUMENTS = 512
_BITS = {
    "i1": (0, 1), "i8": (-(2**7), 2**7 - 1), "i16": (-(2**15), 2**15 - 1), "i32": (-(2**31), 2**31 - 1),
    "i64": (-(2**63), 2**63 - 1), "u1": (0, 1), "u8": (0, 2**8 - 1), "u16": (0, 2**16 - 1), "u32": (0, 2**32 - 1),
    "u64": (0, 2**64 - 1),
}  # fmt: skip
_FLOATS = frozenset({"fp16", "bf16", "fp32", "fp64"})


@dataclass(frozen=True, slots=True)
class View:
    """A tensor in a storage; shape, strides and offset in elements."""

    storage: int
    dtype: torch.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    @property
    def is_empty(self) -> bool:
        return 0 in self.shape

    @property
    def extent(self) -> tuple[int, int]:
        """The first of its bytes in the storage, and the one behind the last."""
        last = sum((size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True))
        return self.offset * self.dtype.itemsize, (self.offset + last + 1) * self.dtype.itemsize

    def overlaps(self, other: View) -> bool:
        """True if the byte ranges of the views overlap."""
        if self.storage != other.storage or self.is_empty or other.is_empty:
            return False
        (first, end), (its_first, its_end) = self.extent, other.extent
        return first < its_end and its_first < end


@dataclass(frozen=True, slots=True)
class Pointer:
    storage: int
    offset: int  # bytes


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A tensor descriptor whose tensor lies in its storage."""

    base: Pointer
    tiling: Tiling


@dataclass(frozen=True, slots=True)
class Number:
    kind: str  # Triton's name of the type: "i32", "fp32"
    value: int | float


@dataclass(frozen=True, slots=True)
class Launch:
    kernel: int
    grid: tuple[int, int, int]
    arguments: tuple[Pointer | Descriptor | Number, ...]


@dataclass(frozen=True, slots=True)
class Fill:
    target: View
    value: int | float


@dataclass(frozen=True, slots=True)
class Copy:
    target: View
    source: View


@dataclass(frozen=True, slots=True)
class Kernel:
    name: str
    symbol: str  # its name in the binary
    sha256: str  # of its binary
    warps: int
    shared: int  # bytes of dynamic shared memory
    scratch: tuple[int, int]  # bytes for each block: global, profile


@dataclass(frozen=True, slots=True)
class Program:
    """One call of `forward` on one workload."""

    storages: tuple[int, ...]  # bytes
    constants: tuple[int, ...]  # storages whose contents come with the program
    named: Mapping[str, View]  # tensors that are filled before each run: `state.<name>`, `input.<i>`
    steps: tuple[Launch | Fill | Copy, ...]
    outputs: tuple[View, ...]
    tree: Any

    @property
    def launches(self) -> list[tuple[int, tuple[int, int, int]]]:
        """Kernel and grid of each launch."""
        return [(step.kernel, step.grid) for step in self.steps if isinstance(step, Launch)]


def read_kernels(claim: Any) -> tuple[Kernel, ...]:
    """Read the kernels of a trace. Raises `MalformedReply`."""
    return tuple(_kernel(entry) for entry in expect(claim, list))


def read_program(claim: Any, kernels: int) -> Program:
    """Read a program that launches kernels with indices below `kernels`. Raises `MalformedReply`."""
    fields = expect(claim, dict)
    entries = expect(fields.get("storages"), list)
    storages = tuple(_at_least(0, expect(entry, dict).get("bytes")) for entry in entries)
    steps = expect(fields.get("steps"), list)
    if len(storages) > MAX_STORAGES or len(steps) > MAX_STEPS:
        raise MalformedReply(f"a program of {len(storages)} storages and {len(steps)} steps")
    named = {name: _view(view, storages) for name, view in expect(fields.get("named"), dict).items()}
    return Program(
        storages=storages,
        constants=tuple(i for i, entry in enumerate(entries) if entry.get("origin") == "constant"),
        named=named,
        steps=tuple(_step(step, storages, kernels) for step in steps),
        outputs=tuple(_view(view, storages) for view in expect(fields.get("outputs"), list)),
        tree=fields.get("tree"),
    )


def _kernel(claim: Any) -> Kernel:
    fields = expect(claim, dict)
    warps = _at_least(1, fields.get("warps"))
    if warps > _MAX_WARPS:
        raise MalformedReply(f"a kernel of {warps} warps")
    sizes = tuple(_at_least(0, size) for size in expect(fields.get("scratch"), list))
    if len(sizes) != 2:
        raise MalformedReply("scratch memory is global and profile")
    return Kernel(
        name=expect(fields.get("name"), str),
        symbol=expect(fields.get("symbol"), str),
        sha256=expect(fields.get("sha256"), str),
        warps=warps,
        shared=_at_least(0, fields.get("shared")),
        scratch=(sizes[0], sizes[1]),
    )


def _step(claim: Any, storages: tuple[int, ...], kernels: int) -> Launch | Fill | Copy:
    fields = expect(claim, dict)
    if fields.keys() == {"fill", "value"}:
        return Fill(_view(fields["fill"], storages), _number(fields["value"]))
    if fields.keys() == {"copy", "from"}:
        target, source = _view(fields["copy"], storages), _view(fields["from"], storages)
        if target.shape != source.shape:
            raise MalformedReply("a copy between two shapes")
        return Copy(target, source)
    if fields.keys() != {"launch", "grid", "arguments"}:
        raise MalformedReply(f"a step of {sorted(fields)}")
    kernel, grid = _at_least(0, fields["launch"]), [_at_least(0, n) for n in expect(fields["grid"], list)]
    arguments = expect(fields["arguments"], list)
    if kernel >= kernels or len(grid) != 3 or len(arguments) > _MAX_ARGUMENTS:
        raise MalformedReply("a launch of no kernel, on no grid, or with too many arguments")
    if exceeds_grid(grid):
        raise MalformedReply(f"a grid of {grid}")
    return Launch(kernel, (grid[0], grid[1], grid[2]), tuple(_argument(entry, storages) for entry in arguments))


def exceeds_grid(grid: Sequence[int]) -> bool:
    """True if a GPU takes no grid of these sizes, of which there are at most three."""
    return any(size > most for size, most in zip(grid, MAX_GRID, strict=False))


def _argument(claim: Any, storages: tuple[int, ...]) -> Pointer | Descriptor | Number:
    kind, *rest = expect(claim, list)
    if kind == "*" and len(rest) == 2:
        return _pointer(rest[0], rest[1], storages)
    if kind == MAP and len(rest) == 3:
        base, tiling = _pointer(rest[0], rest[1], storages), _tiling(rest[2])
        if not tiling.within(base.offset, storages[base.storage]):
            raise MalformedReply("a tensor descriptor that is not aligned, or past its storage's end")
        return Descriptor(base, tiling)
    if len(rest) != 1:
        raise MalformedReply(f"an argument of {len(rest)} numbers")
    value = _number(rest[0])
    if kind in _FLOATS and isinstance(value, float):
        return Number(kind, value)
    if kind in _BITS and isinstance(value, int) and _BITS[kind][0] <= value <= _BITS[kind][1]:
        return Number(kind, value)
    raise MalformedReply(f"{value} as {kind}")


def _pointer(storage: Any, offset: Any, storages: tuple[int, ...]) -> Pointer:
    pointer = Pointer(_at_least(0, storage), _at_least(0, offset))
    if pointer.storage >= len(storages) or pointer.offset > storages[pointer.storage]:
        raise MalformedReply("a pointer to no storage, or past its end")
    return pointer


def _tiling(claim: Any) -> Tiling:
    fields = expect(claim, dict)
    shape, strides, block = (
        tuple(_at_least(0, n) for n in expect(fields.get(name), list)) for name in ("shape", "strides", "block")
    )
    element, swizzle = _at_least(0, fields.get("element")), _at_least(0, fields.get("swizzle"))
    try:
        return Tiling(element, shape, strides, block, swizzle, expect(fields.get("nan"), bool))
    except ValueError as error:
        raise MalformedReply(str(error)) from error


def _view(claim: Any, storages: tuple[int, ...]) -> View:
    fields = expect(claim, dict)
    storage, offset = _at_least(0, fields.get("storage")), _at_least(0, fields.get("offset"))
    shape = tuple(_at_least(0, n) for n in expect(fields.get("shape"), list))
    strides = tuple(_at_least(0, n) for n in expect(fields.get("strides"), list))
    dtype = getattr(torch, expect(fields.get("dtype"), str), None)
    if not isinstance(dtype, torch.dtype) or len(shape) != len(strides) or len(shape) > _MAX_DIMENSIONS:
        raise MalformedReply("a view of no dtype, or with other strides than dimensions")
    last = offset + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
    empty = math.prod(shape) == 0
    if storage >= len(storages) or (not empty and (last + 1) * dtype.itemsize > storages[storage]):
        raise MalformedReply("a view of no storage, or past its end")
    return View(storage, dtype, shape, strides, offset)


def _number(claim: Any) -> int | float:
    """An integer, or a float from its hexadecimal text."""
    if type(claim) is int:
        return claim
    try:
        return float.fromhex(expect(claim, str))
    except (ValueError, OverflowError) as error:
        raise MalformedReply(f"no number: {error}") from error


def _at_least(least: int, claim: Any) -> int:
    value = expect(claim, int)
    if not least <= value < 2**62:
        raise MalformedReply(f"{value} is out of range")
    return int(value)
