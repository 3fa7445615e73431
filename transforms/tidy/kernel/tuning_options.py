"""Launch options that an autotuned kernel chooses among. With each of them it computes the same."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from ..read.inductor_source import RawKernel
from .block_sizes import Launch, warps
from .iteration_space import Axis
from .triton_functions import parsed

MOST = 4  # of a kernel: each is compiled and timed on a first call, and verified
_MIN_DOT = 16


def configurations(kernel: RawKernel, axes: Sequence[Axis], launch: Launch, is_matmul: bool) -> tuple[Launch, ...]:
    """The launch itself first, then others; none if a kernel must not run twice on the same memory, as a tuner runs it.

    A block along an axis with a mask may have any size, one along an axis without a mask a half of its own.
    """
    if kernel.accumulates:
        return ()
    least = _MIN_DOT if is_matmul else 1
    found = [launch, _with_other_warps(launch)]
    for blocks in _scaled(axes, launch, least):
        found.append(launch.with_blocks(blocks, warps(blocks, launch.names, is_matmul)))
    return tuple(found[:MOST])


def _with_other_warps(launch: Launch) -> Launch:
    return launch.with_blocks(launch.blocks, launch.warps // 2 if launch.warps > 2 else launch.warps * 2)


def _scaled(axes: Sequence[Axis], launch: Launch, least: int) -> Iterator[dict[str, int]]:
    """The blocks with one of them twice or half as large, inner ones first."""
    for axis in reversed(axes):
        name = launch.names.get(axis.prefix)
        if name is None or axis.block is not None:
            continue
        size = launch.blocks[name]
        if axis.masked and (axis.size is None or size < axis.size):
            yield {**launch.blocks, name: 2 * size}
        if size >= 2 * least:
            yield {**launch.blocks, name: size // 2}


def decorator(configurations: Sequence[Launch], key: Sequence[str]) -> ast.expr:
    """`triton.autotune(...)`: tuned anew where a size in `key` differs."""
    texts = [f"triton.Config({launch.blocks!r}, num_warps={launch.warps})" for launch in configurations]
    return parsed(f"triton.autotune(configs=[{', '.join(texts)}], key={list(key)!r})")
