"""Block sizes and launch options by one fixed rule: sound on any GPU, never the result of a search."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..read.inductor_source import RawKernel
from .iteration_space import Axis

_POINTWISE = 1024  # elements of a block
_TILE = 32  # rows and columns of a two-dimensional block
_REDUCTION = 2048  # elements of a block of rows
_COLUMNS = 1024  # of them in a row, where a row is walked in a loop
_MATMUL = {"y": 32, "x": 32, "r0_": 16}  # float32 products are unrolled, and larger tiles take seconds to compile
_MIN_DOT = 16
_WARP = 128  # elements that a warp handles, one vector of 16 bytes for each of its threads
_MOST_WARPS = 8


@dataclass(frozen=True, slots=True)
class Launch:
    blocks: dict[str, int]  # constexpr parameter -> size
    names: dict[str, str]  # axis prefix -> its constexpr parameter
    programs: tuple[str, ...]  # axis prefix of each dimension of the grid
    warps: int

    def with_blocks(self, blocks: dict[str, int], warps: int) -> Launch:
        return replace(self, blocks=blocks, warps=warps)


def power_of_2(size: int) -> int:
    """The smallest power of 2 that is not below `size`."""
    return 1 << (size - 1).bit_length()


def choose(kernel: RawKernel, axes: Sequence[Axis], words: Mapping[str, tuple[str, str]], is_matmul: bool) -> Launch:
    sizes = {axis.prefix: _limit(axis, kernel) for axis in axes}
    if is_matmul:
        wanted = {p: max(_MIN_DOT, min(_MATMUL.get(p, 1), sizes[p])) for p in sizes if p != "z"}
    elif any(axis.is_reduced for axis in axes):
        wanted = _reduction(axes, sizes)
    elif len(axes) == 1:
        wanted = {"x": min(_POINTWISE, sizes["x"])}
    else:
        wanted = {prefix: min(_TILE, sizes[prefix]) if prefix != "z" else 1 for prefix in sizes}
    for axis in axes:
        if axis.block is not None and axis.prefix in wanted:
            wanted[axis.prefix] = axis.block
        elif not axis.masked and not axis.looped and axis.prefix in wanted:
            wanted[axis.prefix] = min(wanted[axis.prefix], _divisor(axis))
    names = {prefix: words[prefix][1] for prefix in wanted if not (prefix in "xyz" and _is_single(axes, prefix))}
    blocks = {names[prefix]: wanted[prefix] for prefix in names}
    return Launch(blocks, names, _programs(axes), warps(blocks, names, is_matmul))


def warps(blocks: Mapping[str, int], names: Mapping[str, str], is_matmul: bool) -> int:
    """As many as the results of a program keep busy; `names` as in `Launch`."""
    results = math.prod(blocks[name] for prefix, name in names.items() if not (is_matmul and prefix == "r0_"))
    return min(max(results // _WARP, 1), _MOST_WARPS)


def _limit(axis: Axis, kernel: RawKernel) -> int:
    return power_of_2(axis.size if axis.size is not None else kernel.hints.get(axis.prefix, 1 << 20))


def _is_single(axes: Sequence[Axis], prefix: str) -> bool:
    """Whether programs have one element each along the axis."""
    return next(axis for axis in axes if axis.prefix == prefix).block == 1


def _reduction(axes: Sequence[Axis], sizes: Mapping[str, int]) -> dict[str, int]:
    reduced = axes[-1]
    columns = reduced.block if reduced.block is not None else min(_COLUMNS, sizes[reduced.prefix])
    wanted = {reduced.prefix: columns}
    room = max(1, _REDUCTION // columns)
    for axis in reversed(axes[:-1]):
        wanted[axis.prefix] = min(room, sizes[axis.prefix])
        room //= wanted[axis.prefix]
    return wanted


def _divisor(axis: Axis) -> int:
    """The largest block along an axis without a mask: a power of 2 that divides its size.

    A size that is only known at run time has no mask if Inductor's largest block divides it.
    """
    return axis.size & -axis.size if axis.size is not None else _COLUMNS


def _programs(axes: Sequence[Axis]) -> tuple[str, ...]:
    """Innermost first; a size that is only known at run time before others, as only the first may be over 65535."""
    programs = [axis for axis in reversed(axes) if not axis.is_reduced]
    return tuple(axis.prefix for axis in sorted(programs, key=lambda axis: axis.size is not None))
