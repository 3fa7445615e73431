"""Choose launch options: by a fixed rule that is sound on any GPU, and for an autotuned kernel, variants to try.

A kernel's results are the same with each variant.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..read.inductor_source import RawKernel
from .iteration_space import Axis
from .triton_functions import parsed

_MIN_DOT = 16  # smallest block size that `tl.dot` takes
_POINTWISE = 1024  # elements of a block
_TILE = 32  # rows and columns of a two-dimensional block
_REDUCTION = 2048  # elements of a block of rows
_COLUMNS = 1024  # elements of a row in such a block, if the kernel loops over the row
_MATMUL = {"y": 32, "x": 32, "r0_": 16}  # float32 products are unrolled, and larger tiles take seconds to compile
_WARP = 128  # elements that a warp handles, one vector of 16 bytes for each of its threads
_MOST_WARPS = 8
_MOST_TUNED = 4  # launches of one kernel: each is compiled and timed on a first call, and verified

Vocabulary = Mapping[str, tuple[str, str]]  # axis prefix -> name of its index, name of its block size


@dataclass(frozen=True, slots=True)
class Launch:
    """Launch options of a kernel."""

    blocks: dict[str, int]  # constexpr parameter -> size
    names: dict[str, str]  # axis prefix -> its constexpr parameter
    programs: tuple[str, ...]  # axis prefix of each dimension of the grid
    warps: int


def power_of_2(size: int) -> int:
    """The smallest power of 2 that is at least `size`."""
    return 1 << (size - 1).bit_length()


def choose_launch(kernel: RawKernel, axes: Sequence[Axis], words: Vocabulary, is_matmul: bool) -> Launch:
    """Choose the launch options of a kernel."""
    sizes = {
        axis.prefix: power_of_2(axis.size if axis.size is not None else kernel.hints.get(axis.prefix, 1 << 20))
        for axis in axes
    }
    if is_matmul:
        wanted = {p: max(_MIN_DOT, min(_MATMUL.get(p, 1), sizes[p])) for p in sizes if p != "z"}
    elif axes[-1].is_reduced:
        wanted = _reduction(axes, sizes)
    elif len(axes) == 1:
        wanted = {"x": min(_POINTWISE, sizes["x"])}
    else:
        wanted = _tile(sizes)
    for axis in (axis for axis in axes if axis.prefix in wanted):
        if axis.block is not None:
            wanted[axis.prefix] = axis.block
        elif not axis.masked and not axis.looped:
            wanted[axis.prefix] = min(wanted[axis.prefix], _divisor(axis))
    single = {axis.prefix for axis in axes if axis.block == 1 and not axis.is_reduced}
    names = {prefix: words[prefix][1] for prefix in wanted if prefix not in single}
    blocks = {names[prefix]: wanted[prefix] for prefix in names}
    return Launch(blocks, names, _programs(axes, wanted), _warps(blocks, names, is_matmul))


def _warps(blocks: Mapping[str, int], names: Mapping[str, str], is_matmul: bool) -> int:
    """The number of warps that the results of one program keep busy; `names` as in `Launch`."""
    results = math.prod(blocks[name] for prefix, name in names.items() if not (is_matmul and prefix == "r0_"))
    return min(max(results // _WARP, 1), _MOST_WARPS)


def _tile(sizes: Mapping[str, int]) -> dict[str, int]:
    """A square of columns and rows; where one of them is short, as many elements as there would be."""
    wanted = {prefix: min(_TILE, size) for prefix, size in sizes.items()}
    for prefix in ("x", "y"):
        wanted[prefix] = min(sizes[prefix], wanted[prefix] * (_TILE**2 // (wanted["x"] * wanted["y"])))
    return wanted


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

    An axis of a run-time size only has no mask if Inductor's largest block divides the size.
    """
    return axis.size & -axis.size if axis.size is not None else _COLUMNS


def _programs(axes: Sequence[Axis], blocks: Mapping[str, int]) -> tuple[str, ...]:
    """Axes of the grid, innermost first; run-time sizes come first, as only that dimension may exceed 65535.

    Of these, planes come first, as each is a block. A matmul's batches are no blocks, and come last.
    """
    programs = [axis for axis in reversed(axes) if not axis.is_reduced]
    order = sorted(programs, key=lambda axis: (axis.size is not None, blocks.get(axis.prefix) != 1))
    return tuple(axis.prefix for axis in order)


def tuned_launches(kernel: RawKernel, axes: Sequence[Axis], launch: Launch, is_matmul: bool) -> tuple[Launch, ...]:
    """`launch` and variants of it; none for a kernel that reads its own output, as a tuner runs a kernel repeatedly.

    A block along an axis with a mask may have any size; along an axis without a mask it may only be halved.
    """
    if kernel.accumulates:
        return ()
    other_warps = launch.warps // 2 if launch.warps > 2 else launch.warps * 2
    found = [launch, replace(launch, warps=other_warps)]
    for blocks in _scaled(axes, launch, _MIN_DOT if is_matmul else 1):
        found.append(replace(launch, blocks=blocks, warps=_warps(blocks, launch.names, is_matmul)))
    return tuple(found[:_MOST_TUNED])


def _scaled(axes: Sequence[Axis], launch: Launch, least: int) -> Iterator[dict[str, int]]:
    """The blocks with one of them doubled or halved, inner blocks first."""
    for axis in reversed(axes):
        name = launch.names.get(axis.prefix)
        if name is None or axis.block is not None:
            continue
        size = launch.blocks[name]
        if axis.masked and (axis.size is None or size < axis.size):
            yield {**launch.blocks, name: 2 * size}
        if size >= 2 * least:
            yield {**launch.blocks, name: size // 2}


def autotune_decorator(launches: Sequence[Launch], key: Sequence[str]) -> ast.expr:
    """`triton.autotune(...)`, which tunes again where a parameter in `key` has another value."""
    texts = [f"triton.Config({launch.blocks!r}, num_warps={launch.warps})" for launch in launches]
    return parsed(f"triton.autotune(configs=[{', '.join(texts)}], key={list(key)!r})")
