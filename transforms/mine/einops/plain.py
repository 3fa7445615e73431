"""Translate einops.rearrange, repeat and reduce to tensor methods, equal for all shapes that einops accepts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count

from .method_chain import Steps
from .pattern import ELLIPSIS, Group, Pattern, Unsupported, names, parse

_REDUCTIONS = {"max": "amax", "min": "amin", **{name: name for name in ("all", "any", "mean", "prod", "sum")}}


def methods(function: str, text: str, given: Mapping[str, str], reduction: str = "") -> list[str]:
    """Translate `function(tensor, text, [reduction,] **given)` to methods such as `.flatten(1)` and `.mean(dim=0)`.

    Args:
        function: "rearrange", "repeat" or "reduce".
        given: axis -> expression for its length.

    Raises:
        Unsupported: the pattern is invalid, or torch has no simple equivalent.
    """
    pattern = parse(text)
    lengths = {**pattern.lengths, **given}
    _check(function, pattern, lengths, text)
    if reduction and reduction not in _REDUCTIONS:
        raise Unsupported(f"reduction {reduction}")
    return _Plan(pattern, lengths, _REDUCTIONS.get(reduction, "")).write()


def _check(function: str, pattern: Pattern, lengths: Mapping[str, str], text: str) -> None:
    """Apply einops' own rules, except those on lengths, which it checks at run time."""
    left, right = ({axis for axis in names(side) if axis != "1"} for side in (pattern.left, pattern.right))
    gone, new = left - right, right - left
    wrong = {
        "rearrange": gone | new | pattern.lengths.keys(),
        "repeat": gone | (new - lengths.keys()),
        "reduce": new,
    }[function]
    unknown = any(len(set(group) - lengths.keys()) > 1 for group in pattern.left)
    ellipsis_in_group = any(ELLIPSIS in group and len(group) > 1 for group in pattern.left)
    if wrong or unknown or ellipsis_in_group or ELLIPSIS in new or lengths.keys() - left - right:
        raise Unsupported(f"{function} {text!r}")


class _Plan:
    """Splits dimensions, reduces, reorders, adds axes, then joins; a step without effect writes nothing.

    Axes of length 1 get names too: `<0` on the left, `>0` on the right, where they are new axes.
    """

    def __init__(self, pattern: Pattern, lengths: Mapping[str, str], reduction: str) -> None:
        self._left = _named(pattern.left, "<")
        self._right = _named(pattern.right, ">")
        self._lengths = lengths
        self._reduction = reduction
        self._steps = Steps([_joined(group) for group in self._left])
        old = names(self._left)
        self._new = {axis: lengths.get(axis, "1") for axis in names(self._right) if axis not in old}

    def write(self) -> list[str]:
        steps = self._steps
        self._split()
        self._reduce()
        interleaved, tiled = self._repeated()
        self._pair_units()
        steps.squeeze([axis for axis in steps.axes if axis.startswith("<")])
        steps.reorder([axis for axis in names(self._right) if axis in steps.axes])
        if steps.axes == [ELLIPSIS] and self._right == ((">0", ELLIPSIS),):
            steps.flatten((ELLIPSIS,), ELLIPSIS)  # the result always has this dimension
        else:
            self._add()
            self._join()
        for group, length in interleaved.items():
            steps.interleave(_joined(group), length)
        steps.tile({_joined(group): length for group, length in tiled.items()})
        return steps.methods

    def _split(self) -> None:
        whole = {group for group in self._left if len(group) > 1} & set(self._right)
        for group in self._left:
            if len(group) > 1 and group not in whole:
                self._steps.unflatten(_joined(group), group, self._lengths)
        self._right = tuple((_joined(group),) if group in whole else group for group in self._right)

    def _reduce(self) -> None:
        steps, result = self._steps, names(self._right)
        if not self._reduction:
            return
        if ELLIPSIS in steps.axes and ELLIPSIS not in result:
            position = steps.axes.index(ELLIPSIS)
            steps.insert([*steps.axes[:position], "<...", *steps.axes[position:]])  # `...` may be no dimension
            steps.flatten(("<...", ELLIPSIS), ELLIPSIS)
            steps.axes[position] = f"{ELLIPSIS} joined"
        gone = [axis for axis in steps.axes if axis not in result and not axis.startswith("<")]
        keep = len(steps.axes) == len(result) and all(
            axis == target or (axis in gone and target.startswith(">"))
            for axis, target in zip(steps.axes, result, strict=True)
        )
        steps.reduce(self._reduction, gone, keep)
        if keep:
            steps.axes = result

    def _repeated(self) -> tuple[dict[Group, str], dict[Group, str]]:
        """Remove new axes that repeat a group's elements (interleave) or the whole group (tile). Returns both."""
        interleaved: dict[Group, str] = {}
        tiled: dict[Group, str] = {}
        groups: list[Group] = []
        can_tile = ELLIPSIS not in names(self._right)
        for group in self._right:
            old = any(axis not in self._new and axis != ELLIPSIS for axis in group)
            inner = self._new.get(group[-1]) if old else None
            outer = self._new.get(group[0]) if old and can_tile else None
            group = group[1 if outer else 0 : -1 if inner else None]
            if inner:
                interleaved[group] = inner
            if outer:
                tiled[group] = outer
            groups.append(group)
        self._right = tuple(groups)
        return interleaved, tiled

    def _pair_units(self) -> None:
        """Reuse axes of length 1 as new axes between the same neighbours, if the order of the axes does not change."""
        axes, result = self._steps.axes, names(self._right)
        old = [axis for axis in axes if not axis.startswith("<")]
        if old != [axis for axis in result if axis in old]:
            return
        places: dict[int, list[str]] = {}  # number of preceding old axes -> new axes
        before = 0
        for axis in result:
            if axis in old:
                before += 1
            elif axis not in axes:
                places.setdefault(before, []).append(axis)
        before = 0
        for position, axis in enumerate(axes):
            if axis in old:
                before += 1
            elif places.get(before):
                axes[position] = places[before].pop(0)

    def _add(self) -> None:
        steps, order = self._steps, names(self._right)
        lead: set[str] = set()
        if ELLIPSIS not in order and any(self._new.get(axis, "1") != "1" for axis in order):
            first = next((number for number, axis in enumerate(order) if axis in steps.axes), len(order))
            lead = set(order[:first])  # expand adds leading dimensions itself
        steps.insert([axis for axis in order if axis not in lead])
        steps.expand(order, self._new)

    def _join(self) -> None:
        for group in self._right:
            if len(group) > 1:
                self._steps.flatten(group, _joined(group))


def _named(groups: Sequence[Group], prefix: str) -> tuple[Group, ...]:
    """Give names to the axes of length 1."""
    numbers = count()
    return tuple(
        tuple(f"{prefix}{next(numbers)}" if axis == "1" else axis for axis in group or ("1",)) for group in groups
    )


def _joined(group: Group) -> str:
    return " ".join(group)
