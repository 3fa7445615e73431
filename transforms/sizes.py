"""The same call at other sizes: a row's workloads say which of its sizes are free."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kernelquarry.pipeline.schema.records import Workload

Size = tuple[int, ...]  # what one dimension is in each workload


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


def _sizes(workloads: Sequence[Workload]) -> dict[tuple[int, int], Size]:
    """By tensor and axis of the first workload; of that one alone where others have no such dimension."""
    found = {}
    for tensor, spec in enumerate(workloads[0].tensors):
        shapes = [workload.tensors[tensor].shape for workload in workloads if tensor < len(workload.tensors)]
        alike = all(len(shape) == len(spec.shape) for shape in shapes)
        for axis, size in enumerate(spec.shape):
            found[tensor, axis] = tuple(shape[axis] for shape in shapes) if alike else (size,)
    return found
