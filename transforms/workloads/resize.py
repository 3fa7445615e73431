"""The same call at other sizes.

A size that differs between the workloads of a row is free: it may be changed. The other sizes are fixed.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations, islice, product

from kernelquarry.pipeline.schema.records import TensorSpec, Workload

Size = tuple[int, ...]  # one dimension's size in each workload

_BLOCK = 16  # smallest block of a kernel; an enlarged size exceeds it
_LONG = 1031  # a prime above 1024, the largest block of most kernels
_IMAGE = 4  # number of axes of a batch of images
_MOST_DRAWN = 1 << 16  # elements of all tensors of a call at drawn sizes
_LONGEST = 1 << 14
_POWERS = range(12, 5, -1)  # of 2: blocks from 4,096 down to 64
_POWERS_OF_LAST = range(14, 5, -1)  # of 2, of a last axis, which takes the largest blocks
_TWO_LONG = 521, 577  # two sizes of a call, each beyond eight blocks of 64
_PAIRS = 3  # of free sizes that are tried
_MOST_LONG = 1 << 19  # elements of all tensors of a call at a long size, where the other sizes are not free
_MOST_ALONE = 3 << 18  # the same, where no other size is free: rows of a fixed width, of which there are many
# More than a cap on programs, and than a grid's second and third axis have: by so many that a mean without the last
# ones is off by more than its tolerance.
_PROGRAMS = 66_001
_MOST_PROGRAMS = 9 << 15  # elements of all tensors of a call with so many programs
_COLUMNS = 200_003  # of long rows: more than any block has
# Columns of one row: three of the largest blocks, of which a kernel may take whole ones alone; and one more than a
# multiple of every usual block, whose last block has one element.
WHOLE_BLOCKS, ONE_MORE = 3 << 16, (1 << 12) + 1
_OBLONG = (3, 16), (2, 7), (1, 4)  # the other sizes of a call with an oblong image, and the image's short side
_MOST_OBLONG = 1 << 17  # elements of all tensors of such a call; outputs may have four times as many
_MOST = 1 << 17  # elements of all tensors of an enlarged call; interpreting more takes long
_MOST_ROUNDED = 1 << 20  # elements of all tensors of a lengthened call that is rounded up
_WIDE = 1 << 23  # elements; as blocks of 1,024, more than a GPU holds at once


def count_elements(workload: Workload) -> int:
    """Number of elements of all tensors together."""
    return sum(math.prod(spec.shape) for spec in workload.tensors)


def free_sizes(workloads: Sequence[Workload]) -> list[Size]:
    """The sizes that differ between the workloads, sorted.

    Dimensions that are equal in every workload, such as a batch, are one size. They stay equal in `resized`.
    """
    return sorted({size for size in axis_sizes(workloads).values() if len(set(size)) > 1})


def by_axis(workloads: Sequence[Workload]) -> list[Size]:
    """The free sizes, those of last axes first: there, a call costs little, and kernels have the most to do."""
    ranks = [len(spec.shape) for spec in workloads[0].tensors]
    from_last = sorted((ranks[tensor] - axis, size) for (tensor, axis), size in axis_sizes(workloads).items())
    free = set(free_sizes(workloads))
    return [size for size in dict.fromkeys(size for _, size in from_last) if size in free]


def resized(workloads: Sequence[Workload], setting: Mapping[Size, int]) -> Workload:
    """The first workload with other values for the sizes in `setting`.

    Where the upper bound of an integer tensor equals a size, as for indices, it changes with that size.
    """
    first, sizes = workloads[0], axis_sizes(workloads)
    tensors = []
    for i, spec in enumerate(first.tensors):
        shape = tuple(setting.get(sizes[i, axis], n) for axis, n in enumerate(spec.shape))
        bounds = tuple(workload.tensors[i].high for workload in workloads if i < len(workload.tensors))
        tensors.append(replace(spec, shape=shape, high=setting.get(bounds, spec.high)))
    return replace(first, tensors=tuple(tensors))


def enlarged(workloads: Sequence[Workload]) -> list[Workload]:
    """Calls in which each free size is one more than the next power of two above its value in all workloads.

    Such a size needs one block more than the workloads do. This reveals a grid, a mask or a loop that only fits the
    workloads. Each call enlarges as many sizes as fit, until each size was enlarged once; the others are as in the
    last workload.
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
            break  # each size alone makes the call too large
        calls.append(resized(workloads, setting))
        left = [size for size in left if size not in taken]
    return calls


def multiplied(workloads: Sequence[Workload]) -> list[Workload]:
    """For each free size, a call with four times its value in the last workload, for modules that need multiples."""
    calls = []
    for size in free_sizes(workloads):
        setting = {other: other[-1] for other in free_sizes(workloads)} | {size: 4 * size[-1]}
        calls.append(resized(workloads, setting))
    return [call for call in calls if count_elements(call) <= _MOST]


def lengthened(
    workloads: Sequence[Workload],
    share: float = 0.0,
    most: int | None = None,
    others: int | None = None,
    elements: int | None = None,
) -> dict[Size, Workload]:
    """For each free size, a call in which it is over a thousand, or several times as large as in the workloads.

    The other sizes are `others`, or have their smallest value above 1, capped by `most`.

    Args:
        share: 0 gives `_LONG`, 1 the largest size that fits, or `_LONGEST`; values between interpolate geometrically.
        elements: the most of all tensors, next to sizes that are not free; None: as many as are interpreted in time.
    """
    free, calls = by_axis(workloads), dict[Size, Workload]()
    setting = dict.fromkeys(free, others) if others else _least(free, most)
    elements = elements or (_MOST_LONG if len(free) > 1 else _MOST_ALONE)
    for size in free:
        if max(size) < _LONG and _fits(workloads, setting | {size: _LONG}):
            lengths = range(_LONG, _LONGEST)
            longest = _LONG - 1 + bisect_left(lengths, True, key=lambda n: not _fits(workloads, setting | {size: n}))
            calls[size] = resized(workloads, setting | {size: _between(_LONG, longest, share) | 1})
            continue
        longest, axes = _longest(workloads, setting, size, elements), _axes_of(workloads, size)
        if 2 * max(size) ** axes < longest**axes:  # a kernel may take all axes of an image as one
            shortest = _LONG if longest > _LONG and len(free) > 1 else longest * 9 // 10
            calls[size] = resized(workloads, setting | {size: _between(shortest, longest, share) | 1})
    return calls


def in_blocks(workloads: Sequence[Workload], others: int) -> list[Workload]:
    """For each free size, a call in which it is three times a power of two: several times any usual block.

    The power is the largest up to 4,096 that fits if the other sizes are `others`, without those for which none fits.
    """
    free, calls = by_axis(workloads), list[Workload]()
    for size in free:
        tried = (resized(workloads, dict.fromkeys(free, others) | {size: 3 << power}) for power in _POWERS)
        calls += islice((call for call in tried if count_elements(call) <= _MOST_DRAWN), 1)
    return calls


def in_largest_blocks(workloads: Sequence[Workload], elements: int, fewest: int = 2) -> dict[Size, Workload]:
    """The size of the first tensor's last axis -> a call in which it is three times a power of two up to 16,384.

    The other sizes are 2, or 1 if a larger power fits so. Empty if that size is not free, or no power fits.

    Args:
        elements: of all tensors.
        fewest: 2 for no sizes of 1, which may be broadcast.
    """
    free, last = free_sizes(workloads), _last_size(workloads)
    if last is None or last not in free:
        return {}
    pairs = product(_POWERS_OF_LAST, range(2, fewest - 1, -1))
    tried = (resized(workloads, dict.fromkeys(free, n) | {last: 3 << power}) for power, n in pairs)
    found = next((call for call in tried if count_elements(call) <= elements), None)
    return {last: found} if found else {}


def oblong(workloads: Sequence[Workload], share: float) -> dict[Size, list[Workload]]:
    """For each free size of several axes of an image, a call with a wide image and a call with a tall one.

    A kernel has several blocks of such an image's width, or of its height, where a square one would be too large.
    `share` interpolates between two lengths.
    """
    length = _between(_LONG, _LONG * 5 // 4, share)
    sizes, found = axis_sizes(workloads), dict[Size, list[Workload]]()
    for size in by_axis(workloads):
        if any(len(_axes_of_image(spec, tensor, size, sizes)) > 1 for tensor, spec in enumerate(workloads[0].tensors)):
            tried = [_oblong(workloads, size, length, *few) for few in _OBLONG]
            found[size] = next(([*calls] for calls in tried if max(map(count_elements, calls)) <= _MOST_OBLONG), [])
    return found


def _oblong(
    workloads: Sequence[Workload], size: Size, length: int, others: int, short: int
) -> tuple[Workload, Workload]:
    sizes = axis_sizes(workloads)
    call = resized(workloads, dict.fromkeys(free_sizes(workloads), others) | {size: short})
    images = []
    for end in (-1, 0):
        tensors = list(call.tensors)
        for tensor, spec in enumerate(tensors):
            shape = list(spec.shape)
            for axis in _axes_of_image(spec, tensor, size, sizes)[end:][:1]:
                shape[axis] = length if end == 0 else 2 * length | 1
            tensors[tensor] = replace(spec, shape=tuple(shape))
        images.append(replace(call, tensors=tuple(tensors)))
    wide, tall = images
    return wide, tall


def _axes_of_image(spec: TensorSpec, tensor: int, size: Size, sizes: Mapping[tuple[int, int], Size]) -> list[int]:
    """The axes of an image or a volume that have a size, if its last axis has it."""
    axes = [axis for axis in range(_IMAGE - 2, len(spec.shape)) if sizes[tensor, axis] == size]
    return axes if len(spec.shape) - 1 in axes else []


def paired(workloads: Sequence[Workload], share: float, few: int) -> list[Workload]:
    """For each of the first pairs of free sizes, a call in which both exceed a block, without those too large.

    A kernel that confuses their strides, or packs their numbers of blocks, is wrong there alone. The others have their
    smallest value above 1, capped by `few`. `share` interpolates between two sizes.
    """
    free = by_axis(workloads)
    setting = _least(free, few)
    one, other = (_between(*_TWO_LONG, part) for part in (share, 1 - share))
    pairs = islice(combinations(free, 2), _PAIRS)
    calls = [resized(workloads, setting | {first: one, second: other}) for first, second in pairs]
    return [call for call in calls if count_elements(call) <= _MOST_LONG]


def each_as_in(workloads: Sequence[Workload], call: Workload, few: int) -> list[Workload]:
    """For each free size, a call in which it is as in `call`, without those too large.

    The others have their smallest value above 1, capped by `few`.
    """
    free, sizes = free_sizes(workloads), axis_sizes(workloads)
    setting = _least(free, few)
    own = {
        size: call.tensors[tensor].shape[axis]
        for (tensor, axis), size in sizes.items()
        if size in free and tensor < len(call.tensors) and axis < len(call.tensors[tensor].shape)
    }
    calls = [resized(workloads, setting | {size: n}) for size, n in own.items() if n not in size]
    return [each for each in calls if count_elements(each) <= _MOST_LONG]


def _axes_of(workloads: Sequence[Workload], size: Size) -> int:
    """The number of axes with a size that one tensor has at most."""
    tensors = [tensor for (tensor, _), each in axis_sizes(workloads).items() if each == size]
    return max(map(tensors.count, tensors))


def _longest(workloads: Sequence[Workload], setting: dict[Size, int], size: Size, elements: int) -> int:
    """The largest value of a size with which a call has at most so many elements.

    It is at most somewhat above `_LONG`, or twice `_LONG` if no other size is free.
    """
    lengths = range(1, _LONG * 5 // 4 if len(setting) > 1 else 2 * _LONG)
    return bisect_left(lengths, True, key=lambda n: not _fits(workloads, setting | {size: n}, elements))


def crowded(workloads: Sequence[Workload]) -> list[Workload]:
    """For each free size, a call in which it is over 65,536 and the others are 2, without the calls that are too large.

    A kernel with a program for each row or element of that axis then runs more programs than any usual cap. The last
    axis of the first tensor has over 200,000 elements where that fits.
    """
    free, last = by_axis(workloads), _last_size(workloads)
    lengths, calls = ((_COLUMNS, _MOST_LONG), (_PROGRAMS, _MOST_PROGRAMS)), list[Workload]()
    for size in free:
        tried = ((resized(workloads, dict.fromkeys(free, 2) | {size: n}), most) for n, most in lengths[size != last :])
        calls += islice((call for call, most in tried if count_elements(call) <= most), 1)
    return calls


def one_long_row(workloads: Sequence[Workload], columns: int) -> dict[Size, Workload]:
    """The size of the first tensor's last axis -> a call in which it is `columns`, and the others are 1.

    Empty if that size is not free, or the call is too large.
    """
    free, last = free_sizes(workloads), _last_size(workloads)
    if last is None or last not in free:
        return {}
    call = resized(workloads, dict.fromkeys(free, 1) | {last: columns})
    return {last: call} if count_elements(call) <= _MOST_LONG else {}


def _last_size(workloads: Sequence[Workload]) -> Size | None:
    """The size of the first tensor's last axis; None without a tensor, or if that has no axis."""
    tensors = workloads[0].tensors
    return axis_sizes(workloads).get((0, len(tensors[0].shape) - 1)) if tensors else None


def set_each(workloads: Sequence[Workload], n: int = 1) -> list[Workload]:
    """For each free size, a call in which it is `n`; the others are as in the last workload."""
    free = free_sizes(workloads)
    return [resized(workloads, {other: other[-1] for other in free} | {size: n}) for size in free]


def unpredictable(workloads: Sequence[Workload], shares: Sequence[float]) -> list[Workload]:
    """Calls at sizes that a candidate cannot predict; none if no size is free.

    1. Each free size is interpolated geometrically between 4 and `_LONG` by its share. Sizes start at 4 because half
       of 3 may be 1, which broadcasts.
    2. Each free size is 128, 256 or 512, by its share. In both calls, the last sizes keep their smallest value if the
       call would become too large.
    3. All free sizes are the same power of two.

    Args:
        shares: one number in [0, 1) for each free size.
    """
    free = free_sizes(workloads)
    uneven = [_between(4, _LONG, share) for share in shares]
    even = [128 << int(3 * share) for share in shares]
    settings = []
    for sizes in (uneven, even):
        setting = _least(free)
        for size, n in zip(free, sizes, strict=True):
            setting = setting | {size: n} if _fits(workloads, setting | {size: n}) else setting
        settings.append(setting)
    alike = (dict.fromkeys(free, n) for n in (128, 64))
    settings += [setting for setting in alike if len(free) > 1 and _fits(workloads, setting)][:1]
    return [resized(workloads, setting) for setting in settings] if free else []


def at_numbers(
    workloads: Sequence[Workload], numbers: Sequence[int], most: int, few: int, limits: Sequence[int] = ()
) -> list[Workload]:
    """Calls in which each free size takes each of `numbers` that no workload has for it.

    One call sets as many sizes as fit. Earlier numbers come first.

    Args:
        limits: the numbers for which a call may be twice as large.
        most: at most this many calls.
        few: cap of the other sizes where the call with their smallest values would be too large.
    """
    free, calls = free_sizes(workloads), list[Workload]()
    least = _least(free)
    shortest = _least(free, few)
    left = [(size, n) for n in numbers for size in free if n not in size]
    largest = {n: _MOST_LONG << (n in limits) for n in numbers}
    left = [(size, n) for size, n in left if _fits(workloads, shortest | {size: n}, largest[n])]
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
    """Calls in which the first tensor with a free size has a quarter more elements than a number, at most `most` calls.

    With hardly more, what is left out of a mean would be within its tolerance.

    Only `numbers` that are too large for the other functions here are used. The tensor's first free size is changed.
    """
    sizes, free = axis_sizes(workloads), set(free_sizes(workloads))
    long = next((size for size in sizes.values() if size in free), None)
    if long is None:
        return []
    tensor = next(tensor for (tensor, _), size in sizes.items() if size == long)
    setting = {size: size[-1] for size in free}

    def numel(n: int) -> int:
        return math.prod(resized(workloads, setting | {long: n}).tensors[tensor].shape)

    lengths = [1 + bisect_right(range(n), 5 * n // 4, key=numel) for n in numbers if _MOST_DRAWN < n < _WIDE]
    calls = [resized(workloads, setting | {long: n}) for n in lengths]
    return [call for call in calls if count_elements(call) <= _WIDE][:most]


def non_square(workloads: Sequence[Workload], call: Workload, upright: bool) -> Workload | None:
    """The call with images and volumes whose last axes increase in size, or decrease if `upright`.

    Only axes that are free and equal in all workloads change: there, a kernel that confuses them is not noticed. None
    if there are no such axes.
    """
    sizes, free, tensors = axis_sizes(workloads), set(free_sizes(workloads)), list(call.tensors)
    for tensor, spec in enumerate(call.tensors):
        last = len(spec.shape) - 1
        alike = [axis for axis in range(_IMAGE - 2, last + 1) if sizes[tensor, axis] == sizes[tensor, last] in free]
        if len(alike) > 1:
            shape, step = list(spec.shape), max(2, spec.shape[-1] // 3)
            for place, axis in enumerate(reversed(alike) if upright else alike):
                shape[axis] += place * step
            tensors[tensor] = replace(spec, shape=tuple(shape))
    return replace(call, tensors=tuple(tensors)) if tensors != list(call.tensors) else None


def _least(free: Sequence[Size], most: int | None = None) -> dict[Size, int]:
    """The smallest value above 1 of each size, capped by `most`."""
    least = {size: min((n for n in size if n > 1), default=1) for size in free}
    return {size: min(n, most) for size, n in least.items()} if most else least


def _between(least: int, most: int, share: float) -> int:
    return int(least * (most / least) ** share)


def _fits(workloads: Sequence[Workload], setting: Mapping[Size, int], most: int = _MOST_DRAWN) -> bool:
    return count_elements(resized(workloads, setting)) <= most


def wide(workloads: Sequence[Workload], elements: int = _WIDE) -> Workload | None:
    """A call with at least `elements` elements in which all free sizes grow by one factor; None if no size is free.

    Grown sizes are odd.
    """
    setting = {size: size[-1] for size in free_sizes(workloads)}
    return _widened(workloads, setting, elements) if any(setting.values()) else None


def square(workloads: Sequence[Workload], elements: int = _WIDE) -> Workload | None:
    """A call with at least `elements` elements in which all free sizes are the same odd number.

    None if fewer than two sizes are free.
    """
    free = free_sizes(workloads)
    return _widened(workloads, dict.fromkeys(free, 1), elements) if len(free) > 1 else None


def _widened(workloads: Sequence[Workload], setting: Mapping[Size, int], elements: int) -> Workload:
    while count_elements(resized(workloads, setting)) < elements:
        setting = {size: 2 * n + 1 for size, n in setting.items()}
    return resized(workloads, setting)


def rounded(workloads: Sequence[Workload], call: Workload, unit: int) -> Workload | None:
    """The call with each free size rounded up to a multiple of `unit`; None if it becomes too large."""
    sizes, free = axis_sizes(workloads), set(free_sizes(workloads))
    given = {size: call.tensors[tensor].shape[axis] for (tensor, axis), size in sizes.items() if size in free}
    found = resized(workloads, {size: _up(n, unit) for size, n in given.items()})
    return found if count_elements(found) <= _MOST_ROUNDED else None


def large(workloads: Sequence[Workload], elements: int, unit: int = 1) -> list[Workload]:
    """For each free size, a call with more than `elements` elements by that size; sizes are multiples of `unit`."""
    others = {size: _up(size[-1], unit) for size in free_sizes(workloads)}

    def at(size: Size, n: int) -> Workload:
        return resized(workloads, others | {size: n})

    def least(size: Size) -> int:
        return bisect_right(range(elements + 1), elements, key=lambda n: count_elements(at(size, n)))

    return [at(size, _up(least(size), unit)) for size in others]


def _up(n: int, unit: int) -> int:
    return -(-n // unit) * unit


def axis_sizes(workloads: Sequence[Workload]) -> dict[tuple[int, int], Size]:
    """(tensor, axis) of the first workload -> its size in each workload that has this tensor."""
    from kernelquarry.pipeline.sandbox.jobs.axis_sizes import sizes_by_axis  # with the sandbox comes torch

    return sizes_by_axis([[spec.shape for spec in workload.tensors] for workload in workloads])
