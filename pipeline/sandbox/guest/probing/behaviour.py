"""Digests of what a module computes on inputs that are the same for every module: equal for equal functions.

Inputs and state have values that follow from shapes alone, so neither names nor the order of parameters matter.
Shapes are made alike first: each size becomes the same unless the module refuses it, and every number of leading axes
is tried. Of the outputs only the sorted values count, to five digits: not their layout, nor the order of a sum. What
only moves values has therefore no digest.

A module is looked at as it was constructed, and once more with all sizes of its construction made one
(`Constructor.evened`), since those are guessed from names: two spellings of one function may have been given others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import permutations
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..lib import pytree
from ..lib.float64 import InFloat64, widened
from .guarded_call import attempt
from .guess import MAX_ELEMENTS, Guess, Spec

_Shape = tuple[int, ...]

EVEN = 32  # what each size of an evened construction becomes: divisible by groups and heads
SIDE = 4  # what each size of an input becomes
LARGE = 16  # a number from here on is a size, and not a kernel's, a stride or a number of heads
_RANKS = range(1, 6)  # of the input with the most axes
_DRAWS = 2
_QUANTILES = 64  # of the sorted outputs of one draw
_STEPS = 1e5  # of the largest value; float64 errors are a billionth of a step
_DISTINCT = 8  # quantised values that a digest needs to tell anything


def told(module: nn.Module, guess: Guess, file: str) -> list[str]:
    """What outputs tell for each number of axes, "" where that is too little or nothing runs. Changes the module."""
    _set_state(widened(module), _by_place)
    subject = _Subject(module, guess.tree(), guess.specs(), file)
    shapes = _alike(subject)
    return [subject.told(_of_rank(shapes, rank)) for rank in _RANKS]


def told_evened(module: nn.Module, size: int, guess: Guess, file: str) -> list[str]:
    """The same of a module that was constructed with `size` for all sizes. `guess` fits the module as it was before.

    State follows from places along axes up to `size`, each axis alike, so that a transposed weight is the same weight,
    and so are layers and what they are when they are joined.
    """
    _set_state(widened(module), lambda shape, salt: _by_axes(shape, salt, size))
    for specs in _plainer(guess.specs()):
        subject = _Subject(module, guess.tree(), specs, file)
        for least in (SIDE + 1, LARGE):
            shapes = [tuple(size if n >= least else n for n in spec.shape) for spec in specs]
            if subject.runs(shapes):
                return [subject.told(subject.reduced(_of_rank(shapes, rank))) for rank in _RANKS]
    return []


def _plainer(specs: tuple[Spec, ...]) -> Iterator[tuple[Spec, ...]]:
    """Inputs that spellings of one function have in common though they were guessed otherwise: floats, of one shape."""
    floats = tuple(replace(spec, dtype="float32") if spec.dtype == "int64" else spec for spec in specs)
    largest = max((spec.shape for spec in specs), key=len, default=())
    yield tuple(replace(spec, shape=largest) for spec in floats)
    yield floats
    yield tuple(replace(spec, high=min(spec.high, spec.low + SIDE)) for spec in specs)


def digest(told: Sequence[str]) -> str:
    """Of all that outputs tell; "" if they tell nothing."""
    return hashlib.sha256("\n\n".join(told).encode()).hexdigest()[:16] if any(told) else ""


@dataclass(frozen=True, slots=True)
class _Subject:
    """A module with the call that is made of it, on inputs of any shapes."""

    module: nn.Module
    tree: list[Any]
    specs: tuple[Spec, ...]
    file: str

    def runs(self, shapes: Sequence[_Shape]) -> bool:
        if sum(map(prod, shapes)) > MAX_ELEMENTS:
            return False
        inputs = [_input(spec, shape, 0) for spec, shape in zip(self.specs, shapes, strict=True)]
        return self.outputs(inputs) is not None

    def reduced(self, shapes: list[_Shape]) -> list[_Shape]:
        """With SIDE on every axis, or on each that can have it."""
        most = max((len(shape) for shape in shapes), default=0)
        for axes in (range(most), *([axis] for axis in range(most))):
            smaller = [
                tuple(SIDE if axis + most - len(shape) in axes else n for axis, n in enumerate(shape))
                for shape in shapes
            ]
            if smaller != shapes and self.runs(smaller):
                shapes = smaller
        return shapes

    def told(self, shapes: Sequence[_Shape]) -> str:
        """What its outputs tell on inputs of these shapes, "" if that is too little."""
        return min(self._told(order) for order in _orders(self.specs, shapes))

    def _told(self, draws: list[list[Tensor]]) -> str:
        lines: list[str] = []
        for inputs in draws:
            values = self.outputs(inputs)
            if values is None or _only_moves(values, inputs):
                return ""
            lines += _quantised(values)
        needed = _DISTINCT if len(lines) > 2 * _DISTINCT else _DRAWS + 1  # the loss of each draw, all scaled to 1
        return "\n".join(lines) if len(set(lines)) >= needed else ""

    def outputs(self, inputs: list[Tensor]) -> np.ndarray[Any, Any] | None:
        """All values of its outputs, None if there are none."""
        args = pytree.fill(self.tree, inputs)
        with torch.no_grad(), InFloat64():
            result, failure = attempt(lambda: self.module(*args), self.file)
        found: list[Tensor] = []
        if failure is None:
            _, failure = attempt(lambda: pytree.flatten(result, found), self.file)
        if failure is not None or not any(t.numel() for t in found):
            return None
        return np.concatenate([t.detach().double().numpy().reshape(-1) for t in found])


def _alike(subject: _Subject) -> list[_Shape]:
    """The shapes of the inputs, with SIDE for every size that can be replaced by it."""
    shapes = [spec.shape for spec in subject.specs]
    sizes = sorted({size for shape in shapes for size in shape} - {SIDE})
    for chosen in (sizes, *([size] for size in sizes)):
        changed = [tuple(SIDE if size in chosen else size for size in shape) for shape in shapes]
        if subject.runs(changed):
            shapes = changed
            if chosen is sizes:
                break
    return shapes


def _of_rank(shapes: Sequence[_Shape], rank: int) -> list[_Shape]:
    """With as many more leading axes, or fewer, as give the largest this many."""
    most = max((len(shape) for shape in shapes), default=0)
    return [_with_axes(shape, rank - most) for shape in shapes]


def _with_axes(shape: _Shape, more: int) -> _Shape:
    """With more leading axes, or fewer."""
    return (SIDE,) * more + shape if more > 0 else shape[-more:]


def _orders(specs: Sequence[Spec], shapes: Sequence[_Shape]) -> Iterator[list[list[Tensor]]]:
    """Draws of the inputs; two or three that are alike in every order, since that is the author's choice."""
    alike = len(specs) in (2, 3) and len(set(shapes)) == len({spec.dtype for spec in specs}) == 1
    for order in permutations(range(len(specs))) if alike else [range(len(specs))]:
        yield [
            [_input(spec, shape, 100 * draw + place) for spec, shape, place in zip(specs, shapes, order, strict=True)]
            for draw in range(_DRAWS)
        ]


def _only_moves(values: np.ndarray[Any, Any], inputs: list[Tensor]) -> bool:
    """The outputs are the inputs' values in some order, which is all that such a module decides."""
    given = np.concatenate([t.double().numpy().reshape(-1) for t in inputs])
    few = values[:_DISTINCT, None]  # tell nearly always, without sorting the others
    return values.size >= given.size and bool((few == given).any(1).all()) and bool(np.isin(values, given).all())


def _quantised(values: np.ndarray[Any, Any]) -> list[str]:
    finite = np.sort(values[np.isfinite(values)])
    if not finite.size:
        return ["no number"]
    scale = float(np.abs(finite).max())
    chosen = finite[np.linspace(0, finite.size - 1, min(_QUANTILES, finite.size)).astype(int)]
    steps = np.rint(chosen / scale * _STEPS).astype(int) if scale else np.zeros(1, int)
    return [f"{values.size} {finite.size} {scale:.5g}", *(str(step) for step in steps)]


def _set_state(module: nn.Module, values: Callable[[_Shape, int], Tensor]) -> None:
    """Parameters between -0.5 and 0.5, buffers that hold one number throughout, as running statistics do, above it."""
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.is_floating_point():
                parameter.copy_(values(tuple(parameter.shape), 7) - 0.5)
        for value in module.buffers():
            if value.is_floating_point() and value.numel() and bool((value == value.flatten()[0]).all()):
                value.copy_(values(tuple(value.shape), 11) + 0.5)


def _input(spec: Spec, shape: _Shape, salt: int) -> Tensor:
    values = _by_place(shape, salt)
    if spec.dtype == "bool":
        return values < 0.5
    if spec.dtype == "float32":
        return 3 * values - 1.5
    return (spec.low + values * max(1, spec.high - spec.low)).long()


def _by_place(shape: _Shape, salt: int) -> Tensor:
    """Numbers in [0, 1), one for each place in memory."""
    return _hashed(np.arange(prod(shape), dtype=np.uint64), salt).reshape(shape)


def _by_axes(shape: _Shape, salt: int, size: int) -> Tensor:
    """Numbers in [0, 1) for the sum of the places along the axes, each counted up to `size` again and again.

    Near the middle if there are several axes: sums of many products shall not saturate what follows them.
    """
    axes = [np.arange(n, dtype=np.uint64) % np.uint64(size) for n in shape if n != 1]
    numbers = _hashed(reduce(np.add.outer, axes, np.zeros((), np.uint64)), salt + 16 * len(axes)).reshape(shape)
    return numbers if len(axes) < 2 else (numbers - 0.5) * (2 / size**0.5) + 0.5


def _hashed(numbers: np.ndarray[Any, Any], salt: int) -> Tensor:
    """Numbers in [0, 1) that follow from integers and `salt`: SplitMix64, the same on every machine."""
    with np.errstate(over="ignore"):
        z = (numbers + np.uint64(salt << 32)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return torch.from_numpy(np.asarray((z >> np.uint64(11)) / 2.0**53))
