"""Choose calls that are large enough to be timed, by multiplying the free sizes of a row's first call."""

from __future__ import annotations

from collections.abc import Sequence

from kernelquarry.pipeline.schema.records import Workload
from kernelquarry.transforms.workloads.resize import Size, count_elements, free_sizes, resized

_BATCH = 128  # the batch grows to this size first
_LONG = 4096  # then the other sizes grow to this size, before the batch grows further
_FRACTIONS = (1, 4, 16)  # divisors of the number of elements, for calls that cannot be timed


def calls_to_time(workloads: Sequence[Workload], elements: int) -> list[Workload]:
    """Calls with at most `elements` elements in their tensors, the preferred ones first and the row's own call last.

    Sizes are doubled, which keeps their divisors. A module may limit a size, such as the length of a sequence, so there
    is also a call in which only the batch grows.
    """
    free = free_sizes(workloads)
    batch = [size for size in free if size == _first_axis(workloads)]
    grown = [_grown(workloads, sizes, batch, elements // part) for part in _FRACTIONS for sizes in (free, batch)]
    return list(dict.fromkeys([*grown, workloads[0]]))


def _first_axis(workloads: Sequence[Workload]) -> Size:
    tensors = [workload.tensors[0] for workload in workloads if workload.tensors]
    return tuple(tensor.shape[0] for tensor in tensors if tensor.shape)


def _grown(workloads: Sequence[Workload], sizes: Sequence[Size], batch: Sequence[Size], most: int) -> Workload:
    """Double sizes of the first workload, one at a time, while it has at most `most` elements."""
    setting = {size: size[0] for size in sizes}
    call = resized(workloads, setting)

    def priority(size: Size) -> tuple[int, int, Size]:
        early, late, limit = (0, 2, _BATCH) if size in batch else (1, 3, _LONG)
        place = early if setting[size] < limit else late
        return place, setting[size] // max(1, size[0]), size

    while True:
        for size in sorted(sizes, key=priority):
            larger = resized(workloads, setting | {size: 2 * setting[size]})
            if count_elements(call) < count_elements(larger) <= most:
                setting[size] *= 2
                call = larger
                break
        else:
            return call
