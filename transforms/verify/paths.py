"""Paths of a forward, as its rehearsal tells them: the operators that it ran and the kernels that it launched."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from kernelquarry.pipeline.schema.records import Workload

Path = list[str]
MORE = "and more"  # the last step of a path that was broken off


def is_longer_loop(path: Path, workload: Workload, tried: Sequence[tuple[Any, Workload]]) -> bool:
    """Whether it is a path that was tried, but for how often it goes through a loop: for each step of a sequence, say,
    or each item of a batch. As often as an axis is long, or several together: two paths that were tried must show that.

    Args:
        path: of a call with `workload`; it may be broken off.
        tried: those of the trials; None is no path.
    """
    known = [(each, call) for each, call in tried if isinstance(each, list)]
    longest, _ = max(known, key=lambda pair: len(pair[0]), default=([], workload))
    if len({len(each) for each, _ in known}) < 2 or (loop := _loop(longest)) is None:
        return False
    whole = path[-1:] != [MORE]
    steps = path if whole else path[:-1]
    every = [*known, (steps, workload)] if whole else known
    if not all(each == _unrolled(longest, *loop, len(each)) for each, _ in every):
        return False
    if not whole and steps != _unrolled(longest, *loop, len(longest) + len(steps))[: len(steps)]:
        return False
    return any(_grows(every, sizes) for sizes in zip(*(_sizes(call) for _, call in every), strict=False))


def _loop(path: Path) -> tuple[int, int] | None:
    """Where the longest part that is the same over and over begins, and how many steps it repeats; None if none is."""
    best, found = 0, None
    for steps in range(1, len(path) // 2 + 1):
        run = 0
        for at in range(steps, len(path)):
            run = run + 1 if path[at] == path[at - steps] else 0
            if run >= steps and run + steps > best:
                best, found = run + steps, (at - steps - run + 1, steps)
    return found


def _unrolled(path: Path, start: int, steps: int, length: int) -> Path:
    """The path with its loop gone through more or less often, so that it has that length, as nearly as it can."""
    more = (length - len(path)) // steps
    if more >= 0:
        return path[: start + steps] + path[start : start + steps] * more + path[start + steps :]
    return path[:start] + path[start - more * steps :]


def _sizes(workload: Workload) -> Iterator[int]:
    """What a loop may go through: an axis, or the first ones together."""
    for spec in workload.tensors:
        yield from spec.shape
        yield from (math.prod(spec.shape[:count]) for count in range(2, len(spec.shape)))


def _grows(every: Sequence[tuple[Path, Workload]], sizes: Sequence[int]) -> bool:
    """Whether paths are longer by as much as the sizes are."""
    pairs = sorted((size, len(path)) for (path, _), size in zip(every, sizes, strict=True))
    (least, shortest), (most, longest) = pairs[0], pairs[-1]
    return most > least and all(
        (length - shortest) * (most - least) == (longest - shortest) * (size - least) for size, length in pairs
    )
