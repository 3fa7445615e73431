"""Compare paths through forward: the operators that it calls and the kernels that it launches, in order."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from kernelquarry.pipeline.schema.records import Workload

Path = list[str]


def is_longer_loop(path: Path, workload: Workload, tried: Sequence[tuple[Path, Workload]]) -> bool:
    """True if the path equals a path of `tried`, the trials, except for the number of iterations of a loop.

    The number must grow with the length of an axis, or the product of leading axes, such as the steps of a sequence or
    the items of a batch. At least two paths of different lengths must confirm this.
    """
    longest, _ = max(tried, key=lambda pair: len(pair[0]), default=([], workload))
    if len({len(each) for each, _ in tried}) < 2 or (loop := _loop(longest)) is None:
        return False
    every = [*tried, (path, workload)]
    if not all(each == _unrolled(longest, *loop, len(each)) for each, _ in every):
        return False
    return any(_grows(every, sizes) for sizes in zip(*(_sizes(call) for _, call in every), strict=False))


def _loop(path: Path) -> tuple[int, int] | None:
    """Start and period, in steps, of the longest repetition in a path; None if there is none."""
    longest, loop = 0, None
    for steps in range(1, len(path) // 2 + 1):
        run = 0
        for at in range(steps, len(path)):
            run = run + 1 if path[at] == path[at - steps] else 0
            if run >= steps and run + steps > longest:
                longest, loop = run + steps, (at - steps - run + 1, steps)
    return loop


def _unrolled(path: Path, start: int, steps: int, length: int) -> Path:
    """The path with more or fewer iterations of its loop, as near to `length` as whole iterations allow."""
    more = (length - len(path)) // steps
    if more >= 0:
        return path[: start + steps] + path[start : start + steps] * more + path[start + steps :]
    return path[:start] + path[start - more * steps :]


def _sizes(workload: Workload) -> Iterator[int]:
    """Possible iteration counts of a loop: the length of each axis, and products of leading axes."""
    for spec in workload.tensors:
        yield from spec.shape
        yield from (math.prod(spec.shape[:count]) for count in range(2, len(spec.shape)))


def _grows(every: Sequence[tuple[Path, Workload]], sizes: Sequence[int]) -> bool:
    """True if the lengths of the paths are a rising linear function of the sizes."""
    pairs = sorted((size, len(path)) for (path, _), size in zip(every, sizes, strict=True))
    (least, shortest), (most, longest) = pairs[0], pairs[-1]
    return most > least and all(
        (length - shortest) * (most - least) == (longest - shortest) * (size - least) for size, length in pairs
    )
