"""Launch options that an autotuned kernel chooses among; its results are the same with each of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..read.inductor_source import RawKernel
from .block_sizes import MIN_DOT, Launch, choose_warps
from .iteration_space import Axis
from .triton_functions import parsed

MOST = 4  # launches of one kernel: each is compiled and timed on a first call, and verified


def configurations(kernel: RawKernel, axes: Sequence[Axis], launch: Launch, is_matmul: bool) -> tuple[Launch, ...]:
    """`launch` and variants of it; none for a kernel that reads its own output, as a tuner runs a kernel repeatedly.

    A block along an axis with a mask may have any size; along an axis without a mask it may only be halved.
    """
    if kernel.accumulates:
        return ()
    other_warps = launch.warps // 2 if launch.warps > 2 else launch.warps * 2
    found = [launch, replace(launch, warps=other_warps)]
    for blocks in _scaled(axes, launch, MIN_DOT if is_matmul else 1):
        found.append(replace(launch, blocks=blocks, warps=choose_warps(blocks, launch.names, is_matmul)))
    return tuple(found[:MOST])


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


def decorator(configurations: Sequence[Launch], key: Sequence[str]) -> ast.expr:
    """`triton.autotune(...)`, which tunes again where a parameter in `key` has another value."""
    texts = [f"triton.Config({launch.blocks!r}, num_warps={launch.warps})" for launch in configurations]
    return parsed(f"triton.autotune(configs=[{', '.join(texts)}], key={list(key)!r})")
