"""Input tensors and module state of a trial, drawn from a seed: the same bytes on every machine.

The raw numbers come from NumPy's Philox bit generator, whose stream is stable across versions. Values are made from
them by additions, multiplications and powers of two only. PyTorch's generator is not used: `randn` takes another path
with AVX2 than without it, and its last bits differ between machines.
"""

from __future__ import annotations

import hashlib
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from numpy.random import Philox

from kernelquarry.pipeline.schema.records import StateSpec, TensorSpec, Workload

from .jobs.calls import in_range
from .protocol import Tensors

Array = np.ndarray[Any, np.dtype[Any]]
_Shape = tuple[int, ...]
_Divide = Callable[["_Stream", _Shape, int], tuple[int, Array, Array]]

_SUMMANDS = 12  # uniform numbers whose sum is one normal number: standard deviation 1, largest value 6
_GRADIENTS = 4093
_VARIANCE = re.compile(r"var|std|sigma|count|total|size")  # buffers that no training makes negative
_LEAST_STD = 0.02  # of redrawn weights: with a smaller one, a kernel's errors would hide in the rest of the result


def draw_inputs(workload: Workload, distribution: str, seed: int, named: Sequence[float] = ()) -> list[torch.Tensor]:
    """Draw the input tensors of one trial, contiguous, on the CPU.

    Args:
        named: constants from a source, which the distribution `NAMED` is about and some integers take. For `MASKED` and
            `PADDED`, integers that stand for no value, such as an `ignore_index`; they may be out of an input's range.

    Raises:
        ValueError: the distribution or a dtype is unknown.
    """
    # Inputs that are multiplied with each other share one range: where attention's scores exceed 2^31, kernels that
    # scale within the exponential, as all fast ones do, are off by more than a float32 exponential can hold.
    parts = 2 if sum(_dtype(spec.dtype).is_floating_point for spec in workload.tensors) > 1 else 1
    return [
        _draw_input(spec, distribution, _Stream(seed, f"input {i}"), named, parts)
        for i, spec in enumerate(workload.tensors)
    ]


def echo(inputs: Sequence[torch.Tensor], specs: Sequence[TensorSpec], weights: Sequence[torch.Tensor]) -> None:
    """Give rows of each input the values of an earlier input or of a weight, in place, or numbers next to these.

    What is drawn apart hardly ever meets: then a comparison of two inputs is never tried where they are almost equal,
    nor a distance where it is almost 0.
    """
    others = [each for each in weights if each.is_floating_point() and each.numel()]
    for own, spec in zip(inputs, specs, strict=True):
        if not own.is_floating_point() or not own.numel() or not own.dim():
            continue
        if spec.low == spec.high:
            rows, eps = own.view(-1, own.shape[-1]), torch.finfo(own.dtype).eps
            distances = torch.tensor([0.0, eps**0.5, eps])[torch.arange(own.shape[-1]) % 3]
            for place, other in enumerate(others, 1):
                values = torch.from_numpy(np.resize(other.float().numpy(), rows.shape)) * (1 + distances)
                rows[place :: len(others) + 1] = values[place :: len(others) + 1].to(own.dtype)
        others.insert(0, own)


def draw_gradient(seed: int) -> torch.Tensor:
    """Draw the numbers that guests repeat to fill the gradients of a trial's outputs.

    Only guests know the outputs' shapes. The count is prime, so that no two rows or blocks have the same numbers.
    """
    return _tensor(_Stream(seed, "gradient").normal(_GRADIENTS), (_GRADIENTS,), "float32")


def draw_state(state: tuple[StateSpec, ...], seed: int) -> Tensors:
    """Draw new values for parts of a module's state, away from 0 and 1. Returns them by name.

    Redrawn are parameters, and buffers that hold one number throughout, as running statistics do. Integers, booleans
    and complex buffers keep the constructor's values, as do buffers whose values differ from each other (position
    tables, masks, filters) or are not finite.
    """
    drawn = {spec.name: _draw_entry(spec, _Stream(seed, f"state {spec.name}")) for spec in state if _is_free(spec)}
    return {name: tensor for name, tensor in drawn.items() if tensor.numel()}


def draw_far_state(state: tuple[StateSpec, ...], seed: int, flipped: bool = False) -> Tensors:
    """Draw a state as `draw_state` does, further away from the values that constructors and trainings begin with.

    Half of the parameters have the other sign, and some are 0, 1 or eight times as large. Buffers that are never
    negative are up to 64 times as small or 16 times as large; other buffers are four times as large. Counters of
    batches are 1000.

    If `flipped`, buffers have either sign, but for variances. The first number of each parameter is eight times as
    large with its own sign, as that of a scale that is a single number, and the last row of a matrix is 0.
    """
    drawn = draw_state(state, seed)
    for spec in state:
        if spec.name in drawn:
            drawn[spec.name] = _far(spec, drawn[spec.name], _Stream(seed, f"far {spec.name}"), flipped)
        elif spec.name.endswith("num_batches_tracked"):
            drawn[spec.name] = torch.full(spec.shape, 1000, dtype=getattr(torch, spec.dtype))
    return drawn


def is_redrawn(spec: StateSpec) -> bool:
    """True for an entry that `draw_far_state` draws."""
    return (math.prod(spec.shape) > 0 and _is_free(spec)) or spec.name.endswith("num_batches_tracked")


def _far(spec: StateSpec, drawn: torch.Tensor, stream: _Stream, flipped: bool) -> torch.Tensor:
    if drawn.is_complex():
        return drawn
    values, size = drawn.double().reshape(-1).numpy(), drawn.numel()
    if spec.kind != "parameter":
        values = values * (2.0 ** (stream.integers(size, 11) - 6) if spec.minimum >= 0 else 4.0)
        if flipped and not _VARIANCE.search(spec.name):
            values = values * (1 - 2 * stream.integers(size, 2))
        return _tensor(values, spec.shape, spec.dtype)
    signs, kind = 1 - 2 * stream.integers(size, 2), stream.integers(size, 16)
    signs[0], kind[0] = (1, 2) if flipped else (-1, kind[0])  # so that a single parameter changes its sign or size
    values = values * signs
    values = np.select([kind == 0, kind == 1, kind == 2], [0.0 * values, 0.0 * values + 1, 8 * values], values)
    if flipped and len(spec.shape) > 1 and spec.shape[0] > 1:
        row = size // spec.shape[0]
        values[-row:] = 0.0  # a norm of a row is 0 too, and that of another below its eps
        values[-2 * row : -row] *= _BELOW_EPS
    return _tensor(values, spec.shape, spec.dtype)


def _is_free(spec: StateSpec) -> bool:
    dtype, finite = getattr(torch, spec.dtype), all(math.isfinite(value) for value in (spec.mean, spec.minimum))
    if spec.kind == "parameter":
        return finite and (dtype.is_floating_point or dtype.is_complex)
    return finite and dtype.is_floating_point and not _spread(spec)


def _spread(spec: StateSpec) -> float:
    return spec.std if math.isfinite(spec.std) else 0.0  # NaN for a single value


def _draw_entry(spec: StateSpec, stream: _Stream) -> torch.Tensor:
    size, dtype = math.prod(spec.shape), getattr(torch, spec.dtype)
    if dtype.is_complex:
        parts = _draw_entry(replace(spec, shape=(*spec.shape, 2), dtype="float64"), stream)
        return torch.view_as_complex(parts).to(dtype)
    if not _spread(spec) and abs(spec.mean) >= 0.1:
        values = spec.mean * (0.5 + stream.uniform(size))  # a scale of 1 becomes one in [0.5, 1.5)
        return _tensor(values, spec.shape, spec.dtype)
    deviation = max(_spread(spec), _LEAST_STD) if _spread(spec) else 0.5  # a bias of 0 becomes anything
    values = spec.mean + deviation * stream.normal(size)
    if spec.minimum > 0 or (spec.minimum == 0 and (_spread(spec) or spec.kind == "buffer")):
        values = spec.minimum + np.abs(values - spec.minimum)  # probabilities, variances
    return _tensor(values, spec.shape, spec.dtype)


_LANE = np.uint64(16)  # bits of a number, of which a word has four
_LOWEST, _EVEN = np.uint64(0xFFFF), np.uint64(0x0000FFFF0000FFFF)  # the lowest number of a word; every other one


class _Stream:
    """Random numbers for one tensor. Each tensor has its own key, so that it is independent of the others' shapes."""

    def __init__(self, seed: int, name: str) -> None:
        digest = hashlib.sha256(f"{seed} {name}".encode()).digest()
        self._philox = Philox(key=int.from_bytes(digest[:16], "little"))

    def _raw(self, size: int) -> Array:
        return np.asarray(self._philox.random_raw(size), dtype="<u8")

    def normal(self, size: int) -> Array:
        """Numbers with mean 0, standard deviation 1 and largest value 6: sums of uniform numbers, exact in float64."""
        one, two, three, last = self._raw(4 * size).reshape(size, 4).T
        pairs = sum(word & _EVEN for word in (one, one >> _LANE, two, two >> _LANE, three, three >> _LANE))
        total = ((pairs >> np.uint64(32)) + (pairs & np.uint64(0xFFFFFFFF))) << np.uint64(32)  # in units of 2^-48
        total += (last & _LOWEST) << _LANE | last >> _LANE & _LOWEST  # fills the mantissa, so that sums must round
        return (total.view(np.int64) - (_SUMMANDS << 47)) / 2.0**48

    def uniform(self, size: int) -> Array:
        """Numbers in [0, 1)."""
        return (self._raw(size) >> np.uint64(11)) / 2.0**53

    def integers(self, size: int, bound: int) -> Array:
        """Integers in [0, bound)."""
        return (self._raw(size) % np.uint64(bound)).astype(np.int64)


_DOUBLINGS = np.array([4, 0, 1, 0, 2, 0, 1, 0, 3, 0, 1, 0, 2, 0, 1, 0])  # trailing zero bits of 0 to 15


def _normal(stream: _Stream, shape: _Shape) -> Array:
    """Normal numbers."""
    return stream.normal(math.prod(shape))


def _in_slices(values: Array, shape: _Shape, scales: tuple[float, ...]) -> Array:
    """Multiply the slices along the first axis longer than 1 by the scales in turn.

    The last axis is never split: to a kernel, a row with a few scales is like one with a single scale.
    """
    slices = next((size for size in shape[:-1] if size > 1), 1)
    factors = np.array(scales)[np.arange(slices) % len(scales)]
    return (values.reshape(slices, len(values) // slices) * factors[:, None]).reshape(-1)


def _scaled(stream: _Stream, shape: _Shape) -> Array:
    """Normal numbers times 2^-50, which is below the usual eps of a norm, and times 32 in every other slice.

    The large numbers overflow the exponential of a naive softmax, and normalisation changes them.
    """
    return _in_slices(stream.normal(math.prod(shape)), shape, (2.0**-50, 2.0**5))


def _shifted(stream: _Stream, shape: _Shape) -> Array:
    """Normal numbers with a mean of 32: they reveal cancellation, as in a variance computed as E[x^2] - E[x]^2."""
    return 32 + stream.normal(math.prod(shape))


def _faint(stream: _Stream, shape: _Shape) -> Array:
    """Numbers below 0, scaled by 2^-8, and by 2^-20 in every other slice: so small that a wrong eps shows.

    They reveal cancellation near 0. They also reveal a padding with zeros, since 0 exceeds all values of a row.
    """
    return _in_slices(stream.normal(math.prod(shape)) - 4, shape, (2.0**-8, 2.0**-20))


def _heavy_tailed(stream: _Stream, shape: _Shape) -> Array:
    """Normal numbers times 2^k with probability 2^-(k+1), k at most 4: a few values dominate a sum."""
    size = math.prod(shape)
    return stream.normal(size) * (1 << _DOUBLINGS[stream.integers(size, 16)])


def _sparse(stream: _Stream, shape: _Shape) -> Array:
    """Normal numbers, half of them 0, and every other slice 0 throughout: as after a ReLU, and in a padded batch."""
    size = math.prod(shape)
    return _in_slices(stream.normal(size) * stream.integers(size, 2), shape, (1.0, 0.0))


KINDS = 14  # of rows in the distribution "assorted"
_LARGE, _TINY, _FAR = (8, 20), (40, 96), 14  # powers of two
_BELOW_EPS = 2.0**-20  # scale of numbers below the usual eps of a norm or of a scale
_BEYOND = 32
_ALMOST = 2.0**-23  # relative distance of numbers that float32 just tells apart
_MOST_TIED = 3  # the largest whole number, which a twelfth of the values are
_MOST_OF_BYTE = 255
_FAR_BELOW = 768  # where exponentials vanish, and a sum of squares cancels
_MASKED_ROWS = 16
_LEVEL = 8  # the root that is taken of large and far scales, which leaves factors below 6

MASKED = "masked"  # the distribution with runs of -inf, and integers that stand for no value
PADDED = "padded"  # the same; some runs begin their rows
MASKS = (MASKED, PADDED)
ENDS = "ends"  # the distribution with the ends of a range
NAMED = "named"  # the distribution around constants that a source names
ECHOED = "echoed"  # the distribution in which rows have the values of other inputs or weights: see `echo`
_NEAR = 2.0**-20  # relative distance of a number that is just above or below a constant

_SPECIAL = (np.nan, np.inf, -0.0, -np.inf)


def _over_and_over(stream: _Stream, shape: _Shape, kinds: int) -> tuple[int, Array, Array]:
    """Divide the values into parts: rows, or `kinds` parts if there are fewer rows than kinds.

    Kinds repeat in order; the first one is drawn.

    Returns: the number of parts, the part of each value, and the kind of each value's part.
    """
    size = math.prod(shape)
    return _in_parts(stream, size, max(size // shape[-1] if shape and size else 0, kinds), kinds)


def _in_images(stream: _Stream, shape: _Shape, kinds: int) -> tuple[int, Array, Array]:
    """Divide the values into images, volumes or rows: the largest of which there are half as many as kinds.

    Where even rows are fewer, parts are rows; a single row has as many parts as kinds. Otherwise as `_over_and_over`.
    """
    numbers = [n for n in accumulate(shape[:-1], operator.mul) if n > 1]
    number = next((n for n in numbers if 2 * n >= kinds), numbers[-1] if numbers else kinds)
    return _in_parts(stream, math.prod(shape), number, kinds)


def _in_parts(stream: _Stream, size: int, number: int, kinds: int) -> tuple[int, Array, Array]:
    part = np.arange(size) * number // max(1, size)
    start, step = stream.integers(2, kinds)  # another step for another input, so that kinds of two inputs are crossed
    return number, part, (part + start + step * (part // kinds)) % kinds


def _in_columns(stream: _Stream, shape: _Shape, kinds: int) -> tuple[int, Array, Array]:
    """Divide the values into runs of columns, one for each kind, as `_over_and_over` does into rows."""
    size = math.prod(shape)
    width = shape[-1] if shape else 1
    part = np.arange(size) % width * kinds // width
    return kinds, part, (part + int(stream.integers(1, kinds)[0])) % kinds


def _assorted(stream: _Stream, shape: _Shape, parts: int = 1, divide: _Divide = _in_images) -> Array:
    """Rows or images of fourteen kinds in turn; parts of a single row.

    The kinds: equal values, in a quarter of the rows 1; whole numbers, many of them the largest, in a quarter bytes;
    positive numbers, each twice, half of all apart; numbers of one sign and size; all far below 0; large; tiny;
    ascending, the last two beyond all others and almost equal; zeros in the first third; zeros in the last third; zeros
    but for one number; one positive number among negative ones; a number and its negative in turn; plain ones. The
    scales of the large, tiny and far kinds are drawn.
    If `parts` inputs are multiplied with each other, large and far scales are the `parts`-th root of their usual value,
    and of two inputs the values far below 0 a twelfth, and the plain ones small.
    """
    size = math.prod(shape)
    number, part, kinds = divide(stream, shape, KINDS)
    large, tiny = (2.0 ** (least + stream.integers(number, most - least)) for least, most in (_LARGE, _TINY))
    far = 2.0 ** (_FAR * stream.integers(number, 2))  # beyond a finite number that a kernel may use for infinity
    large, far = large ** (1 / parts), far ** (1 / parts)
    alike = np.round(stream.normal(number) * 4) / 4 + 0.125
    is_usual = stream.integers(number, 4) == 0  # tensors of ones, and the bytes of an image
    alike[is_usual] = 1.0
    most_tied = np.where(is_usual, _MOST_OF_BYTE, _MOST_TIED)
    values = stream.normal(size)
    first = np.flatnonzero(np.diff(part, prepend=-1))  # value of each run of values of one part
    length = np.diff(first, append=size)
    run = np.repeat(np.arange(len(first)), length)
    drawn = stream.integers(len(first), 1 << 20) % length
    one = np.where(np.arange(len(first)) % 2, drawn, length - 1)  # a place, or the last

    def of_kind(kind: int, at: Array) -> Array:
        v, scale, own = values[at], part[at], run[at]
        place, long = at - first[own], length[own]
        match kind:
            case 0:
                return alike[scale]
            case 1:
                return np.minimum(np.floor(np.where(is_usual[scale], 128 * np.abs(v), 3 * v)), most_tied[scale])
            case 2:
                return values[first[own] + place % (-(-long // 2))] ** 2
            case 3:
                return (5 + v / 4) * far[scale]
            case 4:
                return (v - _FAR_BELOW / (12 if parts == 2 else 1)) * far[scale]
            case 5:
                return v * large[scale]
            case 6:
                return v / tiny[scale]
            case 7:
                v = v[np.lexsort((v, own))]
                v[place == long - 1] *= _BEYOND
                last = np.flatnonzero((place == long - 1) & (long > 2))
                v[last - 1] = v[last] - _ALMOST * np.abs(v[last])
                return v
            case 8 | 9:
                return np.where(3 * place // long == 2 * (kind - 8), 0.0, v)
            case 10:
                return np.where(place == one[own], 1 + np.abs(v), 0.0)
            case 11:
                return np.where(place == one[own], np.abs(v), -np.abs(v))
            case 12:
                return alike[scale] * (1 - 2 * (place % 2))
        return v * _BELOW_EPS if parts == 2 else v

    for kind in range(KINDS):
        chosen = np.flatnonzero(kinds == kind)
        values[chosen] = of_kind(kind, chosen)
    return values


def _columns(stream: _Stream, shape: _Shape, parts: int = 1) -> Array:
    """The kinds of `assorted` along the last axis: each row has all of them, and each column has one."""
    return _assorted(stream, shape, parts, _in_columns)


def _level(stream: _Stream, shape: _Shape, parts: int = 1) -> Array:
    """The kinds of `assorted`, of one order of magnitude but for tiny ones, so that none hides the error of another."""
    return _assorted(stream, shape, _LEVEL)


def _ending(stream: _Stream, shape: _Shape) -> Array:
    """Normal numbers; the last of each row is twice as large as all others, so that sums show if it is left out."""
    rows = stream.normal(math.prod(shape)).reshape(-1, max(1, shape[-1]) if shape else 1)
    rows[:, -1:] = 2 * np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    return rows.reshape(-1)


def _masked(stream: _Stream, shape: _Shape, padded: bool = False) -> Array:
    """Normal numbers; every sixteenth row, and at least one, has a run of -inf over a third of it, as a mask makes it.

    A row begins with a number, so that a running maximum is finite.
    """
    size, width = math.prod(shape), shape[-1] if shape else 1
    column, row = np.arange(size) % width, np.arange(size) // max(1, width)
    inner = 1 + int(stream.integers(1, max(1, width // 2))[0])
    is_first = padded & (row // _MASKED_ROWS % 2 == (size > width * _MASKED_ROWS))
    start = np.where(is_first, 0, inner)
    run = (row % _MASKED_ROWS == 0) & (column >= start) & (column < start + width // 3)
    return np.where(run, -np.inf, stream.normal(size))


def _left_padded(stream: _Stream, shape: _Shape) -> Array:
    """Those of `masked`; every other run begins its row, and a running maximum with -inf."""
    return _masked(stream, shape, padded=True)


def _padded(stream: _Stream, shape: _Shape, values: Array) -> Array:
    """Rows of four kinds in turn: drawn, every other one with few True; False up to a place, as left padding makes it;
    True up to it, as right; False over the middle half, as between two documents."""
    size, width = math.prod(shape), shape[-1] if shape else 1
    column, row = np.arange(size) % width, np.arange(size) // max(1, width)
    place = 1 + int(stream.integers(1, max(1, width - 1))[0])
    few = (values * stream.integers(size, 8) == 1) | (column == place)
    values = np.where(row % 8 < 4, values, few)
    is_outer = (4 * column < width) | (4 * column >= 3 * width)
    return np.choose(row % 4, (values, column >= place, column < place, is_outer))


def _ends(stream: _Stream, shape: _Shape) -> Array:
    """Numbers from 0 to 1, a quarter of them 0 and a quarter 1."""
    size = math.prod(shape)
    end = stream.integers(size, 4)
    return np.where(end < 2, end, stream.uniform(size))


def _small(stream: _Stream, shape: _Shape) -> Array:
    """Normal numbers times 2^-20: below the eps of a norm, or of a scale, over all values."""
    return stream.normal(math.prod(shape)) * _BELOW_EPS


def _beyond(stream: _Stream, shape: _Shape) -> Array:
    """Normal numbers times 2^33, beyond int32."""
    return stream.normal(math.prod(shape)) * 2.0**33


def _huge(stream: _Stream, shape: _Shape) -> Array:
    """Numbers of either sign, from a quarter of the largest of float16 to three quarters."""
    size = math.prod(shape)
    return (1 - 2 * stream.integers(size, 2)) * (1 + 2 * stream.uniform(size)) * 2.0**14


def _echoed(stream: _Stream, shape: _Shape) -> Array:
    """Normal numbers; rows in turn have those of another input or of a weight, or are next to them."""
    return _normal(stream, shape)  # `echo` does the rest


def _special(stream: _Stream, shape: _Shape) -> Array:
    """Normal numbers with one NaN, one infinity of each sign and one negative zero, each in another quarter.

    No subnormal numbers: a GPU's instructions for logarithms and roots treat them as 0.
    """
    size = math.prod(shape)
    values = stream.normal(size)
    quarter = size // len(_SPECIAL)
    if quarter > 1:  # smaller tensors are scales and the like, whose NaN would spread to all of the output
        places = stream.integers(len(_SPECIAL), quarter) + quarter * np.arange(len(_SPECIAL))
        values[places] = _SPECIAL
    return values


def _named(stream: _Stream, shape: _Shape, numbers: Sequence[float]) -> Array:
    """Two kinds of rows for each number, in turn; parts of all values where there are few rows.

    In the first, half of the values are the number, just below it or just above it; in the second all are beyond it.
    """
    size = math.prod(shape)
    _, _, kind = _over_and_over(stream, shape, 2 * len(numbers))
    number, normal = np.array(numbers)[kind // 2], stream.normal(size)
    near = number * (1 + (stream.integers(size, 3) - 1) * _NEAR)
    half = np.where(stream.integers(size, 2) == 1, near, normal)
    return np.where(kind % 2 == 0, half, number * (1 + np.abs(normal) / 2))


DISTRIBUTIONS: Mapping[str, Callable[[_Stream, _Shape], Array]] = {
    "normal": _normal,
    "scaled": _scaled,
    "shifted": _shifted,
    "shifted_strided": _shifted,  # guests lay it out with other strides
    "faint": _faint,
    "small": _small,
    "beyond": _beyond,
    "huge": _huge,
    "heavy_tailed": _heavy_tailed,
    "sparse": _sparse,
    "assorted": _assorted,
    "columns": _columns,
    "level": _level,
    "ending": _ending,
    ENDS: _ends,
    MASKED: _masked,
    PADDED: _left_padded,
    ECHOED: _echoed,
    "special": _special,
}


KINDS_OF_VALUES: Mapping[str, Callable[[_Stream, _Shape, int], Array]] = {
    "assorted": _assorted,
    "columns": _columns,
    "level": _level,
}


def _draw_input(
    spec: TensorSpec, distribution: str, stream: _Stream, named: Sequence[float], parts: int
) -> torch.Tensor:
    if distribution not in DISTRIBUTIONS and not (distribution == NAMED and named):
        raise ValueError(f"unknown distribution {distribution!r}")
    dtype, size = _dtype(spec.dtype), math.prod(spec.shape)
    if dtype.is_floating_point:
        if distribution == NAMED:
            values = _named(stream, spec.shape, named)
        elif distribution in MASKS and spec.low < spec.high:
            values = _normal(stream, spec.shape)
        elif distribution in KINDS_OF_VALUES:
            values = KINDS_OF_VALUES[distribution](stream, spec.shape, parts)
        else:
            values = DISTRIBUTIONS[distribution](stream, spec.shape)
        if distribution in (*KINDS_OF_VALUES, NAMED):  # half types cannot hold large numbers
            most = math.sqrt(torch.finfo(dtype).max)
            values = np.clip(values, -most, most)
        if spec.low < spec.high and distribution == ENDS:
            values = spec.low + (spec.high - spec.low) * values
        elif spec.low < spec.high:
            values = in_range(np.mod(values, 1, where=np.isfinite(values), out=values), spec.low, spec.high)
        return _tensor(values, spec.shape, spec.dtype)
    if dtype == torch.bool:
        values = stream.integers(size, 2)
        if distribution == "sparse":  # every other row is True throughout, or False throughout
            _, _, kinds = _over_and_over(stream, spec.shape, 4)
            values = np.where(kinds % 2 == 0, values, kinds // 2)
        elif distribution in (*KINDS_OF_VALUES, *MASKS):
            values = _padded(stream, spec.shape, values)
        return _tensor(values, spec.shape, spec.dtype)
    bound = max(1, spec.high - spec.low)
    values = stream.integers(size, bound)
    if distribution == "heavy_tailed":  # small indices are frequent, as in real data
        values = np.minimum(values, stream.integers(size, bound))
    if distribution == "sparse" and size > 1:  # both ends of the range, which a random draw rarely has
        values[[0, -1]] = 0, bound - 1
    if distribution in MASKS:
        own, share = [int(n) - spec.low for n in named if _holds(dtype, n)], 4
    else:
        own, share = [int(n) - spec.low for n in named if n == int(n) and spec.low <= n < spec.high], 2
    if own:
        values = np.where(stream.integers(size, share) == 1, np.array(own)[stream.integers(size, len(own))], values)
    return _tensor(spec.low + values, spec.shape, spec.dtype)


def _holds(dtype: torch.dtype, number: float) -> bool:
    limits = torch.iinfo(dtype)
    return limits.min <= number <= limits.max


def _tensor(values: Array, shape: tuple[int, ...], dtype: str) -> torch.Tensor:
    return torch.from_numpy(values).reshape(shape).to(_dtype(dtype))


def _dtype(name: str) -> torch.dtype:
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype) or dtype.is_complex:
        raise ValueError(f"cannot draw values of dtype {name!r}")
    return dtype
