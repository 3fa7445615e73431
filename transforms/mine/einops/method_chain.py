"""Build a chain of tensor methods while tracking the axes of the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .pattern import ELLIPSIS, Group


class Steps:
    """A chain of methods and the named axes of its result; the axis `...` stands for any number of dimensions."""

    def __init__(self, axes: Sequence[str]) -> None:
        self.axes = list(axes)
        self.methods: list[str] = []

    def _at(self, axis: str) -> int:
        """Index of the axis, counted from the end if an ellipsis precedes it."""
        position = self.axes.index(axis)
        return position - len(self.axes) if ELLIPSIS in self.axes[:position] else position

    def _call(self, method: str, *arguments: object) -> None:
        self.methods.append(f".{method}({', '.join(map(str, arguments))})")

    def unflatten(self, axis: str, group: Group, lengths: Mapping[str, str]) -> None:
        """Split an axis into a group. At most one axis of the group may lack a length, which torch infers."""
        self._call("unflatten", self._at(axis), f"({', '.join(lengths.get(name, '-1') for name in group)})")
        position = self.axes.index(axis)
        self.axes[position : position + 1] = group

    def squeeze(self, axes: Sequence[str]) -> None:
        if axes:
            self._call("squeeze", _tuple([self._at(axis) for axis in axes]))
            self.axes = [axis for axis in self.axes if axis not in axes]

    def reduce(self, method: str, axes: Sequence[str], keep: bool) -> None:
        """Reduce axes; with `keep`, they stay with length 1."""
        if method == "prod":  # torch's prod takes one axis at a time
            for axis in reversed(axes):
                self._call(method, f"dim={self._at(axis)}", *(["keepdim=True"] if keep else []))
                self.axes = [kept for kept in self.axes if keep or kept != axis]
        elif axes:
            self._call(method, f"dim={_tuple([self._at(axis) for axis in axes])}", *(["keepdim=True"] if keep else []))
            self.axes = [axis for axis in self.axes if keep or axis not in axes]

    def reorder(self, order: Sequence[str]) -> None:
        if list(order) == self.axes:
            return
        if ELLIPSIS not in order:
            self._call("permute", *map(self.axes.index, order))
        elif not self._swap(order):
            self._move(order)
        self.axes = list(order)

    def _swap(self, order: Sequence[str]) -> bool:
        """Add `transpose` if exactly two axes change places. Returns False otherwise."""
        moved = [axis for axis, target in zip(self.axes, order, strict=True) if axis != target]
        if len(moved) != 2 or ELLIPSIS in moved:
            return False
        self._call("transpose", *map(self._at, moved))
        return True

    def _move(self, order: Sequence[str]) -> None:
        """Add `movedim` for one axis if that suffices, else for all axes except the ellipsis."""
        after = Steps(order)
        moved = [axis for axis in self.axes if axis != ELLIPSIS]
        for axis in moved:
            if [a for a in self.axes if a != axis] == [a for a in order if a != axis]:
                moved = [axis]
                break
        self._call("movedim", _tuple([*map(self._at, moved)]), _tuple([*map(after._at, moved)]))

    def insert(self, order: Sequence[str]) -> None:
        """Insert axes of length 1 so that the axes are `order`."""
        new = [axis for axis in order if axis not in self.axes]
        before, self.axes = self.axes, list(order)
        if len(new) == 1:
            self._call("unsqueeze", self._at(new[0]))
        elif new:
            parts = ["..." if axis == ELLIPSIS else ":" if axis in before else "None" for axis in order]
            self.methods.append(f"[{', '.join(parts)}]")

    def expand(self, order: Sequence[str], lengths: Mapping[str, str]) -> None:
        """Expand axes of length 1 to `lengths`; leading axes may be new."""
        if all(lengths.get(axis, "1") == "1" for axis in order):
            return
        if ELLIPSIS not in order:
            self._call(
                "expand", *("-1" if lengths.get(a, "1") == "1" and a in self.axes else lengths[a] for a in order)
            )
        else:
            for axis in order:
                if lengths.get(axis, "1") != "1":
                    self.interleave(axis, lengths[axis])
        self.axes = list(order)

    def flatten(self, group: Group, axis: str) -> None:
        """Join a group of neighbouring axes to one axis."""
        start, end = (self.axes.index(name) for name in (group[0], group[-1]))
        numbers = [self._at(group[0])]
        if end + 1 < len(self.axes):
            numbers.append(end - len(self.axes) if ELLIPSIS in self.axes[: end + 1] else end)
        self._call("flatten", *(numbers if numbers != [0] else []))
        self.axes[start : end + 1] = [axis]

    def interleave(self, axis: str, length: str) -> None:
        """Repeat each element of the axis `length` times."""
        self._call("repeat_interleave", length, f"dim={self._at(axis)}")

    def tile(self, lengths: Mapping[str, str]) -> None:
        """Repeat each axis as a whole, as often as `lengths` says."""
        if lengths:
            self._call("repeat", *(lengths.get(axis, "1") for axis in self.axes))


def _tuple(numbers: Sequence[int]) -> str:
    return str(numbers[0]) if len(numbers) == 1 else f"({', '.join(map(str, numbers))})"
