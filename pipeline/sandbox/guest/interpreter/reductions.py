"""`tl.reduce` and `tl.associative_scan` for the batched interpreter: a tree over the axis, all rows at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime.interpreter import TensorHandle

from .batched_builder import Array, encode

Combine = Callable[[list[Array], list[Array]], list[Array]]

# Combinations that NumPy has itself; tl.max and tl.min drop NaN, as the hardware's instructions do.
_UFUNCS: dict[Any, Callable[..., Array]] = {
    tl.standard._sum_combine: np.add,
    tl.standard._prod_combine: np.multiply,
    tl.standard._xor_combine: np.bitwise_xor,
    tl.standard._elementwise_max: np.fmax,
    tl.standard._elementwise_min: np.fmin,
}


def tensor(data: Array, dtype: tl.dtype) -> tl.tensor:
    """A value of the kernel, from data of shape `(programs, *block)`."""
    shape = [int(n) for n in data.shape[1:]]
    return tl.tensor(TensorHandle(data, dtype), tl.block_type(dtype, shape) if shape else dtype)


def reduce(input: Any, axis: int | None, combine_fn: Any, keep_dims: bool = False, **_: Any) -> Any:
    """Reduce by halves, in the order of a warp, not from left to right."""
    operands, single = _operands(input)
    dtypes, shape = [t.dtype for t in operands], operands[0].handle.data.shape
    data = [t.handle.data for t in operands]
    if axis is None:
        data, at = [d.reshape(len(d), -1) for d in data], 1
    else:
        at = _positive(axis, len(shape) - 1) + 1
    combine = _combine(combine_fn, dtypes)
    while (length := data[0].shape[at]) > 1:
        low, high = (_slice(at, 0, length // 2), _slice(at, length // 2, length))
        data = combine([d[low] for d in data], [d[high] for d in data])
    if not keep_dims:
        data = [d.squeeze(at) for d in data]
    elif axis is None:
        data = [d.reshape((len(d),) + (1,) * (len(shape) - 1)) for d in data]
    results = tuple(tensor(d, dtype) for d, dtype in zip(data, dtypes, strict=True))
    return results[0] if single else results


def associative_scan(input: Any, axis: int, combine_fn: Any, reverse: bool = False, **_: Any) -> Any:
    """Inclusive scan in log2(n) steps of doubling distance."""
    operands, single = _operands(input)
    dtypes, data = [t.dtype for t in operands], [t.handle.data for t in operands]
    at = _positive(axis, data[0].ndim - 1) + 1
    if reverse:
        data = [np.flip(d, at) for d in data]
    combine, length, distance = _combine(combine_fn, dtypes), data[0].shape[at], 1
    position = np.arange(length).reshape([-1 if i == at else 1 for i in range(data[0].ndim)])
    while distance < length:
        combined = combine([np.roll(d, distance, at) for d in data], data)
        data = [np.where(position >= distance, new, old) for new, old in zip(combined, data, strict=True)]
        distance *= 2
    if reverse:
        data = [np.flip(d, at) for d in data]
    results = tuple(tensor(d, dtype) for d, dtype in zip(data, dtypes, strict=True))
    return results[0] if single else results


def _operands(input: Any) -> tuple[Sequence[tl.tensor], bool]:
    return ([input], True) if isinstance(input, tl.tensor) else (list(input), False)


def _positive(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} is out of bounds for a block of rank {rank}")
    return axis % rank


def _slice(axis: int, start: int, stop: int) -> tuple[slice, ...]:
    return (*[slice(None)] * axis, slice(start, stop))


def _combine(combine_fn: Any, dtypes: list[tl.dtype]) -> Combine:
    ufunc = _UFUNCS.get(combine_fn)
    if ufunc is not None and dtypes[0] != tl.bfloat16:
        return lambda left, right: [ufunc(left[0], right[0])]

    def combine(left: list[Array], right: list[Array]) -> list[Array]:
        result = combine_fn(*(tensor(d, t) for d, t in zip(left + right, dtypes * 2, strict=True)))
        parts = [result] if isinstance(result, tl.tensor) else list(result)
        return [encode(part.handle.data, dtype) for part, dtype in zip(parts, dtypes, strict=True)]

    return combine
