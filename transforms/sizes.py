"""The same call at other sizes: a row's workloads say which of its sizes are free."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from kernelquarry.pipeline.schema.records import Workload

Size = tuple[int, ...]  # what one dimension is in each workload

_BLOCK = 16  # the least that kernels have; a free size is made larger
_LONG = 1031  # a prime, above the block that most kernels have where a row is longer than a block
_MOST_LONG = 1 << 15  # elements of a lengthened call's tensors
_MOST = 1 << 17  # elements of an enlarged call's tensors: more, and an interpreter takes long
_LARGE = 1 << 25  # elements of a large call's tensors
_WIDE = 1 << 23  # of a wide call's: blocks of a thousand are too many to be on a GPU at once


def count_elements(workload: Workload) -> int:
    """Of all its tensors together."""
    return sum(math.prod(spec.shape) for spec in workload.tensors)


def free_sizes(workloads: Sequence[Workload]) -> list[Size]:
    """The sizes that differ between the workloads. Dimensions that are alike in all of them are one size, such as a
    batch, and stay alike in what `resized` makes of them."""
    return sorted({size for size in _sizes(workloads).values() if len(set(size)) > 1})


def resized(workloads: Sequence[Workload], setting: Mapping[Size, int]) -> Workload:
    """The first workload with the sizes in `setting` set anew."""
    first, sizes = workloads[0], _sizes(workloads)
    tensors = tuple(
        replace(spec, shape=tuple(setting.get(sizes[i, axis], n) for axis, n in enumerate(spec.shape)))
        for i, spec in enumerate(first.tensors)
    )
    return replace(first, tensors=tensors)


def enlarged(workloads: Sequence[Workload]) -> list[Workload]:
    """Calls in which free sizes are one more than the power of two above all workloads': than a block, that is.

    What only holds for as many blocks as the workloads need shows there: a grid, a mask, a loop of one round. As many
    sizes as possible are enlarged in one call, and each in one call; the others are as in the last workload.
    """
    free = free_sizes(workloads)
    least = {size: size[-1] for size in free}
    larger = {size: max(_BLOCK, 1 << (max(size) - 1).bit_length()) + 1 for size in free}
    calls = []
    left = sorted(free, key=lambda size: (larger[size] / least[size], size))
    while left:
        setting, taken = least, set[Size]()
        for size in left:
            wider = setting | {size: larger[size]}
            if count_elements(resized(workloads, wider)) <= _MOST:
                setting, taken = wider, taken | {size}
        if not taken:
            break  # each of them alone is too much
        calls.append(resized(workloads, setting))
        left = [size for size in left if size not in taken]
    return calls


def multiplied(workloads: Sequence[Workload]) -> list[Workload]:
    """Calls with one free size each four times that of the last workload, for modules that take multiples only."""
    calls = []
    for size in free_sizes(workloads):
        setting = {other: other[-1] for other in free_sizes(workloads)} | {size: 4 * size[-1]}
        calls.append(resized(workloads, setting))
    return [call for call in calls if count_elements(call) <= _MOST]


def lengthened(workloads: Sequence[Workload]) -> list[Workload]:
    """Calls with one free size each that is over a thousand, the others as in the last workload, or their least."""
    free, calls = free_sizes(workloads), []
    for size in free:
        settings = ({other: least(other) for other in free} | {size: _LONG} for least in (lambda each: each[-1], min))
        fits = [call for call in (resized(workloads, s) for s in settings) if count_elements(call) <= _MOST_LONG]
        calls += fits[:1] if max(size) < _LONG else []
    return calls


def wide(workloads: Sequence[Workload]) -> Workload | None:
    """A call with over 8 million elements, by all free sizes alike, each of them odd; None if none is free."""
    setting = {size: size[-1] for size in free_sizes(workloads)}
    if not any(setting.values()):
        return None
    while count_elements(resized(workloads, setting)) < _WIDE:
        setting = {size: 2 * n + 1 for size, n in setting.items()}
    return resized(workloads, setting)


def large(workloads: Sequence[Workload]) -> Workload | None:
    """A call with over 32 million elements, by one free size, the first axis' where that is free; None if none is."""
    free = free_sizes(workloads)
    if not free:
        return None
    first = _sizes(workloads).get((0, 0))
    size = first if first in free else free[0]
    one, two = (count_elements(resized(workloads, {other: other[-1] for other in free} | {size: n})) for n in (1, 2))
    return resized(workloads, {other: other[-1] for other in free} | {size: _LARGE // (two - one) + 2})


def _sizes(workloads: Sequence[Workload]) -> dict[tuple[int, int], Size]:
    """By tensor and axis of the first workload; of that one alone where others have no such dimension."""
    found = {}
    for tensor, spec in enumerate(workloads[0].tensors):
        shapes = [workload.tensors[tensor].shape for workload in workloads if tensor < len(workload.tensors)]
        alike = all(len(shape) == len(spec.shape) for shape in shapes)
        for axis, size in enumerate(spec.shape):
            found[tensor, axis] = tuple(shape[axis] for shape in shapes) if alike else (size,)
    return found
