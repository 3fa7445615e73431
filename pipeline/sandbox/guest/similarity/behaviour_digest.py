"""Digests of a module's outputs on fixed inputs, equal for modules that compute the same function.

The values of inputs and state follow from shapes alone, so neither names nor the order of parameters matter. Every size
is set to one value, unless the module fails on it, and every number of leading axes is tried. Outputs are compared as
sorted values to five digits, so neither their layout nor the order of a sum matters. A module that only moves values
therefore has no digest.

A module has digests as it was constructed, and with one value for all sizes of its construction (`Constructor.evened`):
the sizes are guessed from names, so two spellings of one function may have got different ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import permutations
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from kernelquarry.pipeline.sandbox.jobs.calls import in_range

from ..lib import pytree
from ..lib.float64 import InFloat64, widened
from ..probing.guarded_call import result_or_none
from ..probing.guess import MAX_ELEMENTS, Guess, Spec

_Shape = tuple[int, ...]
_Draw = tuple[tuple[_Shape, int], ...]  # (shape, salt of the values) of each input

EVEN = 32  # every size of an evened construction; divisible by groups and heads
SIDE = 4  # every size of an input
LARGE = 16  # smaller numbers are kernel sizes, strides or numbers of heads, and are kept
_RANKS = range(1, 6)  # tried for the input with the most axes
_DRAWS = 2
_QUANTILES = 64  # compared of the sorted outputs of one draw
_STEPS = 1e5  # quantisation steps up to the largest value; float64 errors are a billionth of a step
_DISTINCT = 8  # distinct quantised values that a digest needs
_ROUNDING = 1e-9  # difference of float64 values that rounding makes
_LARGE_INPUT = 1 << 16  # elements from which the first axis is changed after all others are reduced
_PREPARED = 1 << 17  # numbers of each salt that `warm` computes
_WARM_SALTS = (0, 1, 2, 100, 101, 102, 7, 11)  # of three inputs in two draws, of parameters, of buffers
_prepared: dict[int, Tensor] = {}  # salt -> the first numbers of `_by_place`


def warm() -> None:
    """Compute the values that most inputs and states consist of."""
    _prepared.update({salt: _hashed(np.arange(_PREPARED, dtype=np.uint64), salt) for salt in _WARM_SALTS})


def output_texts(module: nn.Module, guess: Guess) -> list[str]:
    """The quantised outputs for each number of axes, as text; "" if the call fails or the values are too uniform.

    Changes the module's state.
    """
    _set_state(widened(module), _by_place)
    call = _Call(module, guess.tree(), guess.specs())
    shapes = _equal_sizes(call)
    return [call.output_text(_of_rank(shapes, rank)) for rank in _RANKS]


def evened_output_texts(module: nn.Module, size: int, guess: Guess) -> list[str]:
    """Output texts as in `output_texts`, for a module that was constructed with `size` for all sizes.

    The values of the state follow from the sum of the indices modulo `size`. So a transposed weight has the same
    values, and so have several layers and their concatenation.

    Args:
        guess: a call that fits the module at its original sizes.
    """
    _set_state(widened(module), lambda shape, salt: _by_axes(shape, salt, size))
    for specs in dict.fromkeys(_common_inputs(guess.specs())):
        call = _Call(module, guess.tree(), specs)
        for least in (SIDE + 1, LARGE):
            shapes = [tuple(size if n >= least else n for n in spec.shape) for spec in specs]
            if call.runs(shapes):
                return [call.output_text(call.reduced(_of_rank(shapes, rank))) for rank in _RANKS]
    return []


def _common_inputs(specs: tuple[Spec, ...]) -> Iterator[tuple[Spec, ...]]:
    """Variants of the inputs on which different guesses agree: floats of one shape, floats, small integers."""
    floats = tuple(replace(spec, dtype="float32", low=0, high=0) if spec.dtype == "int64" else spec for spec in specs)
    largest = max((spec.shape for spec in specs), key=len, default=())
    yield tuple(replace(spec, shape=largest) for spec in floats)
    yield floats
    yield tuple(replace(spec, high=min(spec.high, spec.low + SIDE)) for spec in specs)


def digest(texts: Sequence[str]) -> str:
    """The digest of all output texts; "" if all are empty."""
    return hashlib.sha256("\n\n".join(texts).encode()).hexdigest()[:16] if any(texts) else ""


class _Call:
    """A call of a module on inputs of any shapes. Results are remembered."""

    def __init__(self, module: nn.Module, tree: list[Any], specs: tuple[Spec, ...]) -> None:
        self.specs = specs
        self._module, self._tree = module, tree
        self._results: dict[_Draw, np.ndarray[Any, Any] | None] = {}

    def runs(self, shapes: Sequence[_Shape]) -> bool:
        if _elements(shapes) > MAX_ELEMENTS:
            return False
        return self._outputs(tuple(zip(shapes, range(len(shapes)), strict=True))) is not None

    def reduced(self, shapes: list[_Shape]) -> list[_Shape]:
        """The shapes with SIDE on every axis, or on each axis on which the call runs with it."""
        most = max((len(shape) for shape in shapes), default=0)
        for axes in (range(most), *self._order(shapes, most)):
            smaller = _with_side(shapes, axes, most)
            if smaller != shapes and self.runs(smaller):
                shapes = smaller
        return shapes

    def _order(self, shapes: Sequence[_Shape], most: int) -> list[list[int]]:
        """The axes one by one. The first one, mostly a batch of two, enlarges large inputs, so they change it last."""
        order = [[axis] for axis in range(most)]
        if _elements(shapes) < _LARGE_INPUT:
            return order
        return [*order[1:], *(order[:1] if _elements(_with_side(shapes, order[0], most)) <= MAX_ELEMENTS else [])]

    def output_text(self, shapes: Sequence[_Shape]) -> str:
        """The quantised outputs on inputs of these shapes; "" if there are none or they are too uniform."""
        return min(self._output_text(order) for order in _orders(self.specs, shapes))

    def _output_text(self, draws: Sequence[_Draw]) -> str:
        lines: list[str] = []
        for draw in draws:
            values = self._outputs(draw)
            if values is None or _only_moves(values, self._inputs(draw)):
                return ""
            lines += _quantised(values)
        needed = _DISTINCT if len(lines) > 2 * _DISTINCT else _DRAWS + 1  # a scalar loss gives few lines
        return "\n".join(lines) if len(set(lines)) >= needed else ""

    def _outputs(self, draw: _Draw) -> np.ndarray[Any, Any] | None:
        """All values of the outputs; None if there are none."""
        if draw not in self._results:
            self._results[draw] = result_or_none(lambda: self._called(draw))
        return self._results[draw]

    def _called(self, draw: _Draw) -> np.ndarray[Any, Any] | None:
        args = pytree.fill(self._tree, self._inputs(draw))
        with torch.no_grad(), InFloat64():
            result = self._module(*args)
        found: list[Tensor] = []
        pytree.flatten(result, found)
        if not any(t.numel() for t in found):
            return None
        return np.concatenate([t.detach().double().numpy().reshape(-1) for t in found])

    def _inputs(self, draw: _Draw) -> list[Tensor]:
        return [_input(spec, shape, salt) for spec, (shape, salt) in zip(self.specs, draw, strict=True)]


def _elements(shapes: Sequence[_Shape]) -> int:
    return sum(map(prod, shapes))


def _with_side(shapes: Sequence[_Shape], axes: Sequence[int], most: int) -> list[_Shape]:
    """The shapes with SIDE on these axes, which are counted as in a shape with `most` axes."""
    return [tuple(SIDE if axis + most - len(shape) in axes else n for axis, n in enumerate(shape)) for shape in shapes]


def _equal_sizes(call: _Call) -> list[_Shape]:
    """The shapes of the inputs, with SIDE for every size with which the call still runs."""
    shapes = [spec.shape for spec in call.specs]
    sizes = sorted({size for shape in shapes for size in shape} - {SIDE})
    for chosen in (sizes, *([size] for size in sizes)):
        changed = [tuple(SIDE if size in chosen else size for size in shape) for shape in shapes]
        if call.runs(changed):
            shapes = changed
            if chosen is sizes:
                break
    return shapes


def _of_rank(shapes: Sequence[_Shape], rank: int) -> list[_Shape]:
    """The shapes with leading axes added or removed, so that the largest has `rank` axes."""
    most = max((len(shape) for shape in shapes), default=0)
    return [(SIDE,) * (rank - most) + shape[max(most - rank, 0) :] for shape in shapes]


def _orders(specs: Sequence[Spec], shapes: Sequence[_Shape]) -> Iterator[list[_Draw]]:
    """Draws of the inputs. Two or three inputs of one shape and dtype come in every order: the author chose one."""
    equal = len(specs) in (2, 3) and len(set(shapes)) == len({spec.dtype for spec in specs}) == 1
    for order in permutations(range(len(specs))) if equal else [range(len(specs))]:
        yield [
            tuple((shape, 100 * draw + place) for shape, place in zip(shapes, order, strict=True))
            for draw in range(_DRAWS)
        ]


def _only_moves(values: np.ndarray[Any, Any], inputs: list[Tensor]) -> bool:
    """True if all outputs are values of the inputs, up to rounding: a matrix from its decomposition is one."""
    given = np.concatenate([t.double().numpy().reshape(-1) for t in inputs])
    if values.size < given.size or not all((np.abs(given - value) < _ROUNDING).any() for value in values[:_DISTINCT]):
        return False  # nearly always, without sorting all
    given.sort()
    above = np.minimum(np.searchsorted(given, values), given.size - 1)
    nearest = np.minimum(np.abs(given[above] - values), np.abs(given[np.maximum(above - 1, 0)] - values))
    return bool((nearest < _ROUNDING).all())


def _quantised(values: np.ndarray[Any, Any]) -> list[str]:
    finite = np.sort(values[np.isfinite(values)])
    if not finite.size:
        return ["no number"]
    scale = float(np.abs(finite).max())
    chosen = finite[np.linspace(0, finite.size - 1, min(_QUANTILES, finite.size)).astype(int)]
    steps = np.rint(chosen / scale * _STEPS).astype(int) if scale else np.zeros(1, int)
    return [f"{values.size} {finite.size} {scale:.5g}", *(str(step) for step in steps)]


def _set_state(module: nn.Module, values: Callable[[_Shape, int], Tensor]) -> None:
    """Set parameters to values in [-0.5, 0.5), and constant buffers, such as running statistics, to [0.5, 1.5)."""
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
    if spec.dtype == "float32" and spec.low < spec.high:
        return in_range(values, spec.low, spec.high)
    if spec.dtype == "float32":
        return 3 * values - 1.5
    return (spec.low + values * max(1, spec.high - spec.low)).long()


def _by_place(shape: _Shape, salt: int) -> Tensor:
    """Numbers in [0, 1), one for each index in memory order. Not to be written to."""
    count = prod(shape)
    if salt in _prepared and count <= _PREPARED:
        return _prepared[salt][:count].reshape(shape)
    return _hashed(np.arange(count, dtype=np.uint64), salt).reshape(shape)


def _by_axes(shape: _Shape, salt: int, size: int) -> Tensor:
    """Numbers in [0, 1) from the sum of the indices along the axes, each modulo `size`.

    With several axes, numbers are close to 0.5, so that sums of many products do not saturate later functions.
    """
    axes = [np.arange(n, dtype=np.uint64) % np.uint64(size) for n in shape if n != 1]
    numbers = _hashed(reduce(np.add.outer, axes, np.zeros((), np.uint64)), salt + 16 * len(axes)).reshape(shape)
    return numbers if len(axes) < 2 else (numbers - 0.5) * (2 / size**0.5) + 0.5


def _hashed(numbers: np.ndarray[Any, Any], salt: int) -> Tensor:
    """Numbers in [0, 1) from integers and `salt` by SplitMix64, the same on every machine."""
    with np.errstate(over="ignore"):
        z = (numbers + np.uint64(salt << 32)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return torch.from_numpy(np.asarray((z >> np.uint64(11)) / 2.0**53))
