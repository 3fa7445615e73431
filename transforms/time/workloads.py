"""Calls that are large enough to be timed: the row's own, with its free sizes multiplied."""

from __future__ import annotations

from collections.abc import Sequence

from kernelquarry.pipeline.schema.records import Workload
from kernelquarry.transforms.workloads.resize import Size, count_elements, free_sizes, resized

_BATCH = 128  # up to here a batch grows before all else
_LONG = 4096  # up to here the other sizes do, before the batch grows on
_SMALLER = (1, 4, 16)  # a call that cannot be timed is tried with a fraction of the elements


def calls_to_time(workloads: Sequence[Workload], elements: int) -> list[Workload]:
    """Calls with at most that many elements in their tensors, the most wanted first; the row's own first call is last.

    Sizes are doubled again and again, so that what divides them still does. A module may have bounds on some, such as
    a longest sequence, so each time there is also a call in which the batch alone has grown. Follows from the row.
    """
    free = free_sizes(workloads)
    batch = [size for size in free if size == _first_axis(workloads)]
    grown = [_grown(workloads, sizes, batch, elements // part) for part in _SMALLER for sizes in (free, batch)]
    return list(dict.fromkeys([*grown, workloads[0]]))


def _first_axis(workloads: Sequence[Workload]) -> Size:
    tensors = [workload.tensors[0] for workload in workloads if workload.tensors]
    return tuple(tensor.shape[0] for tensor in tensors if tensor.shape)


def _grown(workloads: Sequence[Workload], sizes: Sequence[Size], batch: Sequence[Size], most: int) -> Workload:
    """The first workload, each time with the size doubled that comes next and leaves it small enough."""
    setting = {size: size[0] for size in sizes}
    call = resized(workloads, setting)

    def turn(size: Size) -> tuple[int, int, Size]:
        early, late, limit = (0, 2, _BATCH) if size in batch else (1, 3, _LONG)
        place = early if setting[size] < limit else late
        return place, setting[size] // max(1, size[0]), size

    while True:
        for size in sorted(sizes, key=turn):
            larger = resized(workloads, setting | {size: 2 * setting[size]})
            if count_elements(call) < count_elements(larger) <= most:
                setting[size] *= 2
                call = larger
                break
        else:
            return call
