"""The same call at other sizes: a row's workloads say which of its sizes are free."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace

from kernelquarry.pipeline.schema.records import Workload

Size = tuple[int, ...]  # what one dimension is in each workload

_BLOCK = 16  # the least that kernels have; a free size is made larger
_LONG = 1031  # a prime, above the block that most kernels have where a row is longer than a block
_IMAGE = 4  # axes of a batch of images
_MOST_LONG = 1 << 16  # elements of a lengthened call's tensors
_MOST = 1 << 17  # elements of an enlarged call's tensors: more, and an interpreter takes long
_MOST_ROUNDED = 1 << 20  # of a lengthened one's that is rounded up
_MANY = 24  # sizes of one kind
_WIDE = 1 << 23  # elements: blocks of a thousand are too many to be on a GPU at once


def count_elements(workload: Workload) -> int:
    """Of all its tensors together."""
    return sum(math.prod(spec.shape) for spec in workload.tensors)


def free_sizes(workloads: Sequence[Workload]) -> list[Size]:
    """The sizes that differ between the workloads. Dimensions that are alike in all of them are one size, such as a
    batch, and stay alike in what `resized` makes of them."""
    return sorted({size for size in _sizes(workloads).values() if len(set(size)) > 1})


def resized(workloads: Sequence[Workload], setting: Mapping[Size, int]) -> Workload:
    """The first workload with the sizes in `setting` set anew. Integers that are below a size, as indices are, stay so:
    all values of the longer axis are drawn."""
    first, sizes = workloads[0], _sizes(workloads)
    tensors = []
    for i, spec in enumerate(first.tensors):
        shape = tuple(setting.get(sizes[i, axis], n) for axis, n in enumerate(spec.shape))
        bounds = tuple(workload.tensors[i].high for workload in workloads if i < len(workload.tensors))
        tensors.append(replace(spec, shape=shape, high=setting.get(bounds, spec.high)))
    return replace(first, tensors=tuple(tensors))


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


def lengthened(workloads: Sequence[Workload], share: float = 0.0, most: int | None = None) -> dict[Size, Workload]:
    """Calls with one free size each that is over a thousand, by that size; the others are their least that is not 1, or
    at most `most`.

    Of the way from there to the largest that is not too much, by factors, a `share` is gone.
    """
    free, calls = free_sizes(workloads), dict[Size, Workload]()
    setting = {size: min(n, most or n) for size, n in _least(free).items()}
    for size in free:
        if max(size) < _LONG and _fits(workloads, setting | {size: _LONG}):
            lengths = range(_LONG, _MOST)
            longest = _LONG - 1 + bisect_left(lengths, True, key=lambda n: not _fits(workloads, setting | {size: n}))
            calls[size] = resized(workloads, setting | {size: _between(_LONG, longest, share)})
    return calls


def single(workloads: Sequence[Workload], n: int = 1) -> list[Workload]:
    """Calls in which one free size each is 1, or `n`, the others as in the last workload."""
    free = free_sizes(workloads)
    return [resized(workloads, {other: other[-1] for other in free} | {size: n}) for size in free]


def sweep_each(workloads: Sequence[Workload]) -> list[Workload]:
    """Calls with one free size each that is another in each of them, as far as they are not too much."""
    calls = [call for n in range(2, 2 + _MANY) for call in single(workloads, n)]
    return [call for call in calls if count_elements(call) <= _MOST]


def unforeseen(workloads: Sequence[Workload], shares: Sequence[float]) -> list[Workload]:
    """A call in which each free size lies, by factors, a share of the way from 4 to a thousand; one in which each is a
    power of two, from 128 to 512; of those that are too much together, the last ones are not; and one in which all are
    the same power of two. None if no size is free. Halves of 3 would be 2 and 1, which is broadcast."""
    free = free_sizes(workloads)
    uneven = [_between(4, _LONG, share) for share in shares]
    even = [128 << int(3 * share) for share in shares]
    settings = []
    for sizes in (uneven, even):
        setting = _least(free)
        for size, n in zip(free, sizes, strict=True):
            setting = setting | {size: n} if _fits(workloads, setting | {size: n}) else setting
        settings.append(setting)
    alike = (dict.fromkeys(free, n) for n in (512, 256, 128, 64))
    settings += [setting for setting in alike if len(free) > 1 and _fits(workloads, setting)][:1]
    return [resized(workloads, setting) for setting in settings] if free else []


def at_numbers(workloads: Sequence[Workload], numbers: Sequence[int], most: int, few: int) -> list[Workload]:
    """At most so many calls in which free sizes are the numbers that no workload has for them, each size each number,
    as far as that is not too much, as many at once as possible, and the first numbers first. The others are their
    least, or `few` beside a number that is too much with those."""
    free, calls = free_sizes(workloads), list[Workload]()
    least = _least(free)
    shortest = {size: min(n, few) for size, n in least.items()}
    left = [(size, n) for n in numbers for size in free if n not in size]
    left = [(size, n) for size, n in left if _fits(workloads, shortest | {size: n})]
    while left and len(calls) < most:
        first, n = left[0]
        setting = (least if _fits(workloads, least | {first: n}) else shortest) | {first: n}
        taken = {first: n}
        for size, n in left:
            if size not in taken and _fits(workloads, setting | {size: n}):
                setting, taken = setting | {size: n}, taken | {size: n}
        calls.append(resized(workloads, setting))
        left = [(size, n) for size, n in left if taken.get(size) != n]
    return calls


def exceed_numel(workloads: Sequence[Workload], numbers: Sequence[int], most: int) -> list[Workload]:
    """At most so many calls in which the first tensor with a free size has just more elements than a number has, of the
    numbers that are too many for other calls: one free size is made that long, the first of that tensor."""
    sizes, free = _sizes(workloads), set(free_sizes(workloads))
    long = next((size for size in sizes.values() if size in free), None)
    if long is None:
        return []
    tensor = next(tensor for (tensor, _), size in sizes.items() if size == long)
    setting = {size: size[-1] for size in free}
    one, two = (math.prod(resized(workloads, setting | {long: n}).tensors[tensor].shape) for n in (1, 2))
    calls = [resized(workloads, setting | {long: n // (two - one) + 2}) for n in numbers if n > _MOST_LONG]
    return [call for call in calls if count_elements(call) <= _WIDE][:most]


def non_square(workloads: Sequence[Workload], call: Workload, upright: bool) -> Workload | None:
    """The call with the last axes of images and volumes each longer than the one before, or shorter if they are to be
    `upright`, where these are free and alike in all workloads: what takes one for the other is right for those. None
    if there are no such."""
    sizes, free, tensors = _sizes(workloads), set(free_sizes(workloads)), list(call.tensors)
    for tensor, spec in enumerate(call.tensors):
        last = len(spec.shape) - 1
        alike = [axis for axis in range(_IMAGE - 2, last + 1) if sizes[tensor, axis] == sizes[tensor, last] in free]
        if len(alike) > 1:
            shape, step = list(spec.shape), max(2, spec.shape[-1] // 3)
            for place, axis in enumerate(reversed(alike) if upright else alike):
                shape[axis] += place * step
            tensors[tensor] = replace(spec, shape=tuple(shape))
    return replace(call, tensors=tuple(tensors)) if tensors != list(call.tensors) else None


def _least(free: Sequence[Size]) -> dict[Size, int]:
    """The least of each that is not 1."""
    return {size: min((n for n in size if n > 1), default=1) for size in free}


def _between(least: int, most: int, share: float) -> int:
    return int(least * (most / least) ** share)


def _fits(workloads: Sequence[Workload], setting: Mapping[Size, int]) -> bool:
    return count_elements(resized(workloads, setting)) <= _MOST_LONG


def wide(workloads: Sequence[Workload], elements: int = _WIDE) -> Workload | None:
    """A call with over 8 million `elements`, by all free sizes alike, each of them odd; None if none is free."""
    setting = {size: size[-1] for size in free_sizes(workloads)}
    return _widened(workloads, setting, elements) if any(setting.values()) else None


def square(workloads: Sequence[Workload], elements: int = _WIDE) -> Workload | None:
    """A call with over 8 million `elements`, in which all free sizes are the same odd number; None if one or none is
    free."""
    free = free_sizes(workloads)
    return _widened(workloads, dict.fromkeys(free, 1), elements) if len(free) > 1 else None


def _widened(workloads: Sequence[Workload], setting: Mapping[Size, int], elements: int) -> Workload:
    while count_elements(resized(workloads, setting)) < elements:
        setting = {size: 2 * n + 1 for size, n in setting.items()}
    return resized(workloads, setting)


def rounded(workloads: Sequence[Workload], call: Workload, unit: int) -> Workload | None:
    """The call with each free size rounded up to a multiple of `unit`, for what takes no others; None if that is too
    much."""
    sizes, free = _sizes(workloads), set(free_sizes(workloads))
    given = {size: call.tensors[tensor].shape[axis] for (tensor, axis), size in sizes.items() if size in free}
    found = resized(workloads, {size: _up(n, unit) for size, n in given.items()})
    return found if count_elements(found) <= _MOST_ROUNDED else None


def large(workloads: Sequence[Workload], elements: int, unit: int = 1) -> list[Workload]:
    """Calls with over so many elements, each by one free size; sizes are multiples of `unit`."""
    calls, others = [], {size: _up(size[-1], unit) for size in free_sizes(workloads)}
    for size in others:
        one, two = (count_elements(resized(workloads, others | {size: n})) for n in (1, 2))
        calls.append(resized(workloads, others | {size: _up(elements // (two - one) + 2, unit)}))
    return calls


def _up(n: int, unit: int) -> int:
    return -(-n // unit) * unit


def _sizes(workloads: Sequence[Workload]) -> dict[tuple[int, int], Size]:
    """By tensor and axis of the first workload; of those alone that have such a tensor."""
    found = {}
    for tensor, spec in enumerate(workloads[0].tensors):
        shapes = [workload.tensors[tensor].shape for workload in workloads if tensor < len(workload.tensors)]
        for axis in range(len(spec.shape)):
            found[tensor, axis] = tuple(_counterpart(spec.shape, axis, shape) for shape in shapes)
    return found


def _counterpart(first: tuple[int, ...], axis: int, shape: tuple[int, ...]) -> int:
    """What the axis is in a shape of another call. Where that has more axes or fewer, it may be counted from either
    end: the same size, if that is there, else the first axis from the first, and all others from the last."""
    from_last = axis - len(first) + len(shape)
    sizes = [shape[place] for place in ((from_last, axis) if axis else (0, from_last)) if 0 <= place < len(shape)]
    return first[axis] if first[axis] in sizes or not sizes else sizes[0]
