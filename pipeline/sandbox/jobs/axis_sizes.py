"""The sizes of a module's inputs in several calls, which differ in some axes."""

from __future__ import annotations

from collections.abc import Sequence

Shape = Sequence[int]
Axis = tuple[int, int]  # index of a tensor of the call, and of its axis


def sizes_by_axis(calls: Sequence[Sequence[Shape]]) -> dict[Axis, tuple[int, ...]]:
    """Axis of the first call -> its size in each call that has this tensor. A call is the shapes of its tensors."""
    found = {}
    for tensor, first in enumerate(calls[0]):
        shapes = [call[tensor] for call in calls if tensor < len(call)]
        for axis in range(len(first)):
            found[tensor, axis] = tuple(_counterpart(first, axis, shape) for shape in shapes)
    return found


def varied(given: Sequence[Shape], calls: Sequence[Sequence[Shape]]) -> list[list[tuple[int, ...]]]:
    """`given` at the sizes of each call that differ between the calls; none if no size does."""
    varying = {axis: sizes for axis, sizes in sizes_by_axis(calls).items() if len(set(sizes)) > 1}
    return [
        [
            tuple(varying[tensor, axis][place] if (tensor, axis) in varying else n for axis, n in enumerate(shape))
            for tensor, shape in enumerate(given)
        ]
        for place in range(len(calls) if varying else 0)
    ]


def _counterpart(first: Shape, axis: int, shape: Shape) -> int:
    """The size of the same axis in the tensor's shape in another call.

    Where the number of axes differs, the axis is counted from either end. The end that gives an equal size wins; else
    the first axis is counted from the front, and the others from the back.
    """
    from_last = axis - len(first) + len(shape)
    sizes = [shape[place] for place in ((from_last, axis) if axis else (0, from_last)) if 0 <= place < len(shape)]
    return first[axis] if first[axis] in sizes or not sizes else sizes[0]
