"""A digest of what a module computes on inputs that are the same for every module: equal for equal functions.

Inputs and state have values that follow from shapes alone, so neither names nor the order of parameters matter.
Shapes are made alike first: each size becomes the same unless the module refuses it, and every number of leading axes
is tried. Of the outputs only the sorted values count, to five digits: not their layout, nor the order of a sum. What
only moves values has therefore no digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .. import trees
from ..widen import InFloat64, widened
from .guess import Guess, Spec
from .trial import attempt

_Shape = tuple[int, ...]

SIDE = 4  # what each size of an input becomes
_RANKS = range(1, 6)  # of the input with the most axes
_DRAWS = 2
_QUANTILES = 64  # of the sorted outputs of one draw
_STEPS = 1e5  # of the largest value; float64 errors are a billionth of a step
_DISTINCT = 8  # quantised values that a digest needs to tell anything


def behaviour(module: nn.Module, guess: Guess, file: str) -> str:
    """The digest, or "" if the module does not run so, or its outputs tell too little. Changes the module."""
    _set_state(widened(module))
    subject = _Subject(module, guess, file)
    shapes = _alike(subject)
    most = max((len(shape) for shape in shapes), default=0)
    found = [subject.told([_with_axes(shape, rank - most) for shape in shapes]) for rank in _RANKS]
    if not any(found):
        return ""
    return hashlib.sha256("\n\n".join(found).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class _Subject:
    """A module with the call that is made of it, on inputs of any shapes."""

    module: nn.Module
    guess: Guess
    file: str

    def told(self, shapes: Sequence[_Shape]) -> str:
        """What its outputs tell on inputs of these shapes, "" if that is too little."""
        return min(self._told(order) for order in _orders(self.guess.specs(), shapes))

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
        args = trees.fill(self.guess.tree(), inputs)
        with torch.no_grad(), InFloat64():
            result, failure = attempt(lambda: self.module(*args), self.file)
        found: list[Tensor] = []
        if failure is None:
            _, failure = attempt(lambda: trees.flatten(result, found), self.file)
        if failure is not None or not any(t.numel() for t in found):
            return None
        return np.concatenate([t.detach().double().numpy().reshape(-1) for t in found])


def _alike(subject: _Subject) -> list[_Shape]:
    """The shapes of the inputs, with SIDE for every size that can be replaced by it."""
    specs = subject.guess.specs()
    shapes = [spec.shape for spec in specs]
    sizes = sorted({size for shape in shapes for size in shape} - {SIDE})
    for chosen in (sizes, *([size] for size in sizes)):
        changed = [tuple(SIDE if size in chosen else size for size in shape) for shape in shapes]
        if subject.outputs([_input(spec, shape, 0) for spec, shape in zip(specs, changed, strict=True)]) is not None:
            shapes = changed
            if chosen is sizes:
                break
    return shapes


def _with_axes(shape: _Shape, more: int) -> _Shape:
    """With more leading axes, or fewer."""
    return (SIDE,) * more + shape if more > 0 else shape[-more:]


def _orders(specs: Sequence[Spec], shapes: Sequence[_Shape]) -> Iterator[list[list[Tensor]]]:
    """Draws of the inputs; two that are alike also the other way round, since their order is the author's choice."""
    alike = len(specs) == 2 and shapes[0] == shapes[1] and specs[0].dtype == specs[1].dtype
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


def _set_state(module: nn.Module) -> None:
    """Parameters between -0.5 and 0.5, buffers that hold one number throughout, as running statistics do, above it."""
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.is_floating_point():
                parameter.copy_(_values(tuple(parameter.shape), 7) - 0.5)
        for value in module.buffers():
            if value.is_floating_point() and value.numel() and bool((value == value.flatten()[0]).all()):
                value.copy_(_values(tuple(value.shape), 11) + 0.5)


def _input(spec: Spec, shape: _Shape, salt: int) -> Tensor:
    values = _values(shape, salt)
    if spec.dtype == "bool":
        return values < 0.5
    if spec.dtype == "float32":
        return 3 * values - 1.5
    return (spec.low + values * max(1, spec.high - spec.low)).long()


def _values(shape: _Shape, salt: int) -> Tensor:
    """Numbers in [0, 1) that follow from the shape's size and `salt`: SplitMix64, the same on every machine."""
    with np.errstate(over="ignore"):
        z = (np.arange(prod(shape), dtype=np.uint64) + np.uint64(salt << 32)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return torch.from_numpy((z >> np.uint64(11)) / 2.0**53).reshape(shape)
