"""`tl.reduce` and `tl.associative_scan` for the batched interpreter: a tree over the axis, all rows at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime.interpreter import InterpretedFunction, TensorHandle

from .batched_builder import Array, encode
from .tape import recorder

Combine = Callable[[list[Array], list[Array]], list[Array]]

# Combinations that NumPy has itself; tl.max and tl.min drop NaN, as the hardware's instructions do.
_UFUNCS: dict[Any, Callable[..., Array]] = {
    tl.standard._sum_combine: np.add,
    tl.standard._prod_combine: np.multiply,
    tl.standard._xor_combine: np.bitwise_xor,
    tl.standard._elementwise_max: np.fmax,
    tl.standard._elementwise_min: np.fmin,
}


def reduce(input: Any, axis: int | None, combine_fn: Any, keep_dims: bool = False, **_: Any) -> Any:
    """Reduce by halves, in the order of a warp, not from left to right."""

    def reduced(handles: Sequence[TensorHandle]) -> list[TensorHandle]:
        data = [handle.data for handle in handles]
        shape = data[0].shape
        at = 1 if axis is None else _positive(axis, len(shape) - 1) + 1
        if axis is None:
            data = [each.reshape(len(each), -1) for each in data]
        while (length := data[0].shape[at]) > 1:
            low, high = (_slice(at, 0, length // 2), _slice(at, length // 2, length))
            data = combine([each[low] for each in data], [each[high] for each in data])
        if not keep_dims:
            data = [each.squeeze(at) for each in data]
        elif axis is None:
            data = [each.reshape((len(each),) + (1,) * (len(shape) - 1)) for each in data]
        return [TensorHandle(each, handle.dtype) for each, handle in zip(data, handles, strict=True)]

    combine = _combine(combine_fn, [each.dtype for each in _operands(input)])
    return _run(reduced, input, combine_fn)


def associative_scan(input: Any, axis: int, combine_fn: Any, reverse: bool = False, **_: Any) -> Any:
    """Inclusive scan in log2(n) steps of doubling distance."""

    def scanned(handles: Sequence[TensorHandle]) -> list[TensorHandle]:
        data = [handle.data for handle in handles]
        at = _positive(axis, data[0].ndim - 1) + 1
        if reverse:
            data = [np.flip(each, at) for each in data]
        length, distance = data[0].shape[at], 1
        position = np.arange(length).reshape([-1 if i == at else 1 for i in range(data[0].ndim)])
        while distance < length:
            combined = combine([np.roll(each, distance, at) for each in data], data)
            data = [np.where(position >= distance, new, old) for new, old in zip(combined, data, strict=True)]
            distance *= 2
        if reverse:
            data = [np.flip(each, at) for each in data]
        return [TensorHandle(each, handle.dtype) for each, handle in zip(data, handles, strict=True)]

    combine = _combine(combine_fn, [each.dtype for each in _operands(input)])
    return _run(scanned, input, combine_fn)


def _run(operation: Callable[[Sequence[TensorHandle]], list[TensorHandle]], input: Any, combine_fn: Any) -> Any:
    """Run an operation on one tensor, or on several together. A combine function may ask for the program's number."""
    operands = _operands(input)
    handles = recorder.run(operation, [each.handle for each in operands], source=combine_fn not in _UFUNCS)
    results = tuple(_tensor(handle, each.dtype) for handle, each in zip(handles, operands, strict=True))
    return results[0] if isinstance(input, tl.tensor) else results


def _tensor(handle: TensorHandle, dtype: tl.dtype) -> tl.tensor:
    """A value of the kernel, from data of shape `(programs, *block)`."""
    shape = [int(n) for n in handle.data.shape[1:]]
    return tl.tensor(handle, tl.block_type(dtype, shape) if shape else dtype)


def _operands(input: Any) -> Sequence[tl.tensor]:
    return [input] if isinstance(input, tl.tensor) else list(input)


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
        parts = zip(left + right, dtypes * 2, strict=True)
        values = tuple(_tensor(TensorHandle(data, dtype), dtype) for data, dtype in parts)
        result = recorder.call(function, values)
        results = _operands(result)
        return [encode(part.handle.data, dtype) for part, dtype in zip(results, dtypes, strict=True)]

    function = combine_fn.rewrite() if isinstance(combine_fn, InterpretedFunction) else combine_fn
    return combine
