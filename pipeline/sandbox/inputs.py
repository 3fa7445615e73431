"""What a trial runs on: input tensors and module state, drawn from a seed, the same bytes on every machine.

Numbers come from NumPy's Philox bit generator, whose raw stream is fixed for good, and are turned into
values by additions, multiplications and powers of two only. PyTorch's own generator is not used:
`randn` takes another path with AVX2 than without, and so gives other last bits on other machines.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.random import Philox

from kernelquarry.pipeline.schema.records import StateSpec, TensorSpec, Workload

from .protocol import Tensors

Array = np.ndarray[Any, np.dtype[Any]]
_Shape = tuple[int, ...]

_SUMMANDS = 12  # uniform numbers that are added up for a normal one: standard deviation 1, largest value 6
_GRADIENTS = 4093
_LEAST_STD = 0.02  # of redrawn weights: below, a kernel's errors would hide in the rest of the result


def draw_inputs(workload: Workload, distribution: str, seed: int, named: Sequence[float] = ()) -> list[torch.Tensor]:
    """The input tensors of one trial, contiguous, on the CPU. The distribution `NAMED` is of the numbers `named`.

    Raises:
        ValueError: the distribution or a dtype is not known.
    """
    # What is multiplied with another input shares its range with it: where attention's scores are beyond 2^31, kernels
    # that scale within the exponential, as all fast ones do, are off by more than it can hold.
    parts = 2 if sum(_dtype(spec.dtype).is_floating_point for spec in workload.tensors) > 1 else 1
    return [
        _draw_input(spec, distribution, _Stream(seed, f"input {i}"), named, parts)
        for i, spec in enumerate(workload.tensors)
    ]


def draw_gradient(seed: int) -> torch.Tensor:
    """Numbers that the gradients of a trial's outputs are made of, over and over.

    Only guests know the outputs' shapes. As many as a prime number, so that no row or block has the same as another.
    """
    return _tensor(_Stream(seed, "gradient").normal(_GRADIENTS), (_GRADIENTS,), "float32")


def draw_state(state: tuple[StateSpec, ...], seed: int) -> Tensors:
    """New values for the entries of a module's state that can take them, by name, away from identity.

    What keeps the constructor's value: integers and booleans (index tables, counters), complex numbers, and buffers
    whose values differ from each other (position tables, masks, filters) or are not finite. What is
    redrawn: parameters, and buffers that hold one number throughout, as running statistics do.
    """
    drawn = {spec.name: _draw_entry(spec, _Stream(seed, f"state {spec.name}")) for spec in state if _is_free(spec)}
    return {name: tensor for name, tensor in drawn.items() if tensor.numel()}


def draw_far_state(state: tuple[StateSpec, ...], seed: int) -> Tensors:
    """As `draw_state`, away from what a constructor or a training begins with: of parameters half have the other sign,
    and some are 0, 1 or eight times as large; what is never negative is up to 64 times as small or 16 times as large;
    other statistics are four times as large; and batches were counted."""
    drawn = draw_state(state, seed)
    for spec in state:
        if spec.name in drawn:
            drawn[spec.name] = _far(spec, drawn[spec.name], _Stream(seed, f"far {spec.name}"))
        elif spec.name.endswith("num_batches_tracked"):
            drawn[spec.name] = torch.full(spec.shape, 1000, dtype=getattr(torch, spec.dtype))
    return drawn


def _far(spec: StateSpec, drawn: torch.Tensor, stream: _Stream) -> torch.Tensor:
    values, size = drawn.double().reshape(-1).numpy(), drawn.numel()
    if spec.kind != "parameter":
        values = values * (2.0 ** (stream.integers(size, 11) - 6) if spec.minimum >= 0 else 4.0)
        return _tensor(values, spec.shape, spec.dtype)
    signs, kind = 1 - 2 * stream.integers(size, 2), stream.integers(size, 16)
    signs[0] = -1  # a lone one has the other
    values = values * signs
    values = np.select([kind == 0, kind == 1, kind == 2], [0.0 * values, 0.0 * values + 1, 8 * values], values)
    return _tensor(values, spec.shape, spec.dtype)


def _is_free(spec: StateSpec) -> bool:
    floating = getattr(torch, spec.dtype).is_floating_point
    finite = all(math.isfinite(value) for value in (spec.mean, spec.minimum))
    return floating and finite and (spec.kind == "parameter" or not _spread(spec))


def _spread(spec: StateSpec) -> float:
    return spec.std if math.isfinite(spec.std) else 0.0  # NaN for a single value


def _draw_entry(spec: StateSpec, stream: _Stream) -> torch.Tensor:
    size = math.prod(spec.shape)
    if not _spread(spec) and abs(spec.mean) >= 0.1:
        values = spec.mean * (0.5 + stream.uniform(size))  # a scale of 1 becomes one in [0.5, 1.5)
        return _tensor(values, spec.shape, spec.dtype)
    deviation = max(_spread(spec), _LEAST_STD) if _spread(spec) else 0.5  # a bias of 0 becomes anything
    values = spec.mean + deviation * stream.normal(size)
    if spec.minimum > 0 or (spec.minimum == 0 and (_spread(spec) or spec.kind == "buffer")):
        values = spec.minimum + np.abs(values - spec.minimum)  # probabilities, variances
    return _tensor(values, spec.shape, spec.dtype)


class _Stream:
    """Numbers of one tensor. Each tensor has its own key, so that none depends on the shapes of the others."""

    def __init__(self, seed: int, name: str) -> None:
        digest = hashlib.sha256(f"{seed} {name}".encode()).digest()
        self._philox = Philox(key=int.from_bytes(digest[:16], "little"))

    def _raw(self, size: int) -> Array:
        return np.asarray(self._philox.random_raw(size), dtype="<u8")

    def normal(self, size: int) -> Array:
        """Mean 0, standard deviation 1, largest value 6: a sum of uniform numbers, exact in float64."""
        lanes = self._raw(4 * size).view("<u2").reshape(size, 16)
        total = lanes[:, :_SUMMANDS].sum(axis=1, dtype=np.int64) << 32  # in units of 2^-48
        total += (lanes[:, 12].astype(np.int64) << 16) + lanes[:, 13]  # a full mantissa: sums must round
        return (total - (_SUMMANDS << 47)) / 2.0**48

    def uniform(self, size: int) -> Array:
        """In [0, 1)."""
        return (self._raw(size) >> np.uint64(11)) / 2.0**53

    def integers(self, size: int, bound: int) -> Array:
        """In [0, bound)."""
        return (self._raw(size) % np.uint64(bound)).astype(np.int64)


_DOUBLINGS = np.array([4, 0, 1, 0, 2, 0, 1, 0, 3, 0, 1, 0, 2, 0, 1, 0])  # zeros at the end of a number of four bits


def _normal(stream: _Stream, shape: _Shape) -> Array:
    return stream.normal(math.prod(shape))


def _in_slices(values: Array, shape: _Shape, scales: tuple[float, ...]) -> Array:
    """Slice after slice times the next scale; a slice is what the first axis of more than one element counts.

    The last axis is not split: few scales within a row are the same to a kernel.
    """
    slices = next((size for size in shape[:-1] if size > 1), 1)
    factors = np.array(scales)[np.arange(slices) % len(scales)]
    return (values.reshape(slices, len(values) // slices) * factors[:, None]).reshape(-1)


def _scaled(stream: _Stream, shape: _Shape) -> Array:
    """2^-50 as large, which is under the usual eps of a norm, and 32 times as large in every other slice.

    The large ones overflow the exponential of a naive softmax, and are no fixed point of a normalisation.
    """
    return _in_slices(stream.normal(math.prod(shape)), shape, (2.0**-50, 2.0**5))


def _shifted(stream: _Stream, shape: _Shape) -> Array:
    """A mean of 32: cancellation shows, as in a variance computed as E[x^2] - E[x]^2."""
    return 32 + stream.normal(math.prod(shape))


def _faint(stream: _Stream, shape: _Shape) -> Array:
    """Below 0, and 256 times as small, or 2^-20 in every other slice: an eps of 1e-5 counts, or one of 1e-12.

    What cancels near 0 shows, and a padding's zeros are the largest.
    """
    return _in_slices(stream.normal(math.prod(shape)) - 4, shape, (2.0**-8, 2.0**-20))


def _heavy_tailed(stream: _Stream, shape: _Shape) -> Array:
    """A normal number times 2^k with probability 2^-(k+1), k at most 4: few values decide a sum."""
    size = math.prod(shape)
    return stream.normal(size) * (1 << _DOUBLINGS[stream.integers(size, 16)])


def _sparse(stream: _Stream, shape: _Shape) -> Array:
    """Normal, but half of the values are 0, and every other slice: as behind a ReLU, and in a padded batch."""
    size = math.prod(shape)
    return _in_slices(stream.normal(size) * stream.integers(size, 2), shape, (1.0, 0.0))


KINDS = 8  # of rows that are assorted
_LARGE, _TINY, _FAR = (8, 20), (40, 96), 14  # powers of two
_BEYOND = 32

NAMED = "named"  # the distribution of numbers that a text names
_NEAR = 2.0**-20  # of a number: what is just above it

_SPECIAL = (np.nan, np.inf, -0.0, -np.inf)


def _over_and_over(stream: _Stream, shape: _Shape, kinds: int) -> tuple[int, Array, Array]:
    """How many parts there are, rows or `kinds` of all values where there are fewer rows; the part of each value, and
    the part's kind, from a drawn one on."""
    size = math.prod(shape)
    number = max(size // shape[-1] if shape and size else 0, kinds)
    part = np.arange(size) * number // max(1, size)
    return number, part, (part + int(stream.integers(1, kinds)[0])) % kinds


def _assorted(stream: _Stream, shape: _Shape, parts: int = 1) -> Array:
    """A row of each kind that no other distribution has, over and over; a part of all values where there are few rows.

    All values alike; whole numbers; numbers from 0 to 1; those of one sign and size; all far below 0; large; tiny; in
    ascending order, the last beyond all others. How large, how tiny and how far is drawn; of `parts` that are
    multiplied, each has its share.
    """
    size = math.prod(shape)
    number, part, kinds = _over_and_over(stream, shape, KINDS)
    large, tiny = (2.0 ** (least + stream.integers(number, most - least)) for least, most in (_LARGE, _TINY))
    far = 2.0 ** (_FAR * stream.integers(number, 2))  # beyond what a kernel may take for the least or the largest
    large, far = large ** (1 / parts), far ** (1 / parts)
    alike = np.round(stream.normal(number) * 4) / 4 + 0.125
    values = stream.normal(size)
    ascending = values[np.lexsort((values, part))]
    ascending[np.diff(part, append=-1) != 0] *= _BEYOND
    kinds_of_values = (
        alike[part],
        np.floor(3 * values),
        values - np.floor(values),
        (5 + values / 4) * far[part],
        (values - 64) * far[part],
        values * large[part],
        values / tiny[part],
        ascending,
    )
    return np.choose(kinds, kinds_of_values)


def _special(stream: _Stream, shape: _Shape) -> Array:
    """Normal, with one NaN, one of each infinity and a negative zero, far apart: a quarter of the values has one.

    No subnormal numbers: the GPU's instructions for logarithms and roots take them for 0.
    """
    size = math.prod(shape)
    values = stream.normal(size)
    quarter = size // len(_SPECIAL)
    if quarter > 1:  # smaller ones are scales and the like, and would decide everything
        places = stream.integers(len(_SPECIAL), quarter) + quarter * np.arange(len(_SPECIAL))
        values[places] = _SPECIAL
    return values


def _named(stream: _Stream, shape: _Shape, numbers: Sequence[float]) -> Array:
    """For each number a row in which half of the values are it, just below or just above, and a row that is beyond it
    throughout, over and over; a part of all values where there are few rows."""
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
    "shifted_strided": _shifted,  # laid out by the guests
    "faint": _faint,
    "heavy_tailed": _heavy_tailed,
    "sparse": _sparse,
    "assorted": _assorted,
    "special": _special,
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
        elif distribution == "assorted":
            values = _assorted(stream, spec.shape, parts)
        else:
            values = DISTRIBUTIONS[distribution](stream, spec.shape)
        if distribution in ("assorted", NAMED):  # half types hold no large ones
            most = math.sqrt(torch.finfo(dtype).max)
            values = np.clip(values, -most, most)
        return _tensor(values, spec.shape, spec.dtype)
    if dtype == torch.bool:
        values = stream.integers(size, 2)
        if distribution == "sparse":  # every other row is set throughout, or not at all
            _, _, kinds = _over_and_over(stream, spec.shape, 4)
            values = np.where(kinds % 2 == 0, values, kinds // 2)
        return _tensor(values, spec.shape, spec.dtype)
    bound = max(1, spec.high - spec.low)
    values = stream.integers(size, bound)
    if distribution == "heavy_tailed":  # small ones again and again, as real indices are
        values = np.minimum(values, stream.integers(size, bound))
    if distribution == "sparse" and size > 1:  # the ends, which few draws of many values have
        values[[0, -1]] = 0, bound - 1
    if own := [int(n) - spec.low for n in named if n == int(n) and spec.low <= n < spec.high]:
        values = np.where(stream.integers(size, 2) == 1, np.array(own)[stream.integers(size, len(own))], values)
    return _tensor(spec.low + values, spec.shape, spec.dtype)


def _tensor(values: Array, shape: tuple[int, ...], dtype: str) -> torch.Tensor:
    return torch.from_numpy(values).reshape(shape).to(_dtype(dtype))


def _dtype(name: str) -> torch.dtype:
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype) or dtype.is_complex:
        raise ValueError(f"cannot draw values of dtype {name!r}")
    return dtype
