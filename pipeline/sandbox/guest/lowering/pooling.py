"""Lower poolings to one reduction over a window each, whatever its size.

Inductor leaves large and uneven windows to the library. For windows that reach over the edge, it divides by the number
of elements as one polynomial of both coordinates.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import sympy
import torch
from torch._inductor import config, ir
from torch._inductor.ir import Pointwise, Reduction, TensorBox
from torch._inductor.virtualized import V, ops
from torch.utils._sympy.functions import FloorDiv

from .sizes import named_size

_UNROLLED = 25  # most elements of a window that are loaded one after the other

Span = Callable[[sympy.Expr], tuple[sympy.Expr, sympy.Expr]]  # output position -> first element, element after the last


def average_pool(
    x: TensorBox,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> TensorBox:
    """Lower `aten.avg_pool2d` and `avg_pool3d`."""
    rank = len(V.graph.current_node.args[1])
    kernel, padding = each(kernel_size, rank), each(padding, rank)
    stride = each(stride, rank) if stride else kernel
    sizes = x.get_size()[-rank:]
    is_padded = any(padding) or ceil_mode

    def span_of(dim: int, edge: int) -> Span:
        """The windows along a dimension, cut off at `edge` elements outside of the input."""

        def span(position: sympy.Expr) -> tuple[sympy.Expr, sympy.Expr]:
            start = position * stride[dim] - padding[dim]
            if not (padding[dim] or ceil_mode):
                return start, start + kernel[dim]
            stop = sympy.Min(start + kernel[dim], sizes[dim] + edge)
            return (start if edge else sympy.Max(start, 0)), stop

        return span

    starts = [lambda position, dim=dim: position * stride[dim] - padding[dim] for dim in range(rank)]
    inside = [span_of(dim, 0) for dim in range(rank)]
    counted = [span_of(dim, padding[dim] if count_include_pad else 0) for dim in range(rank)]
    total = _over_windows(x, kernel, starts, inside if is_padded else None)
    if divisor_override is not None:
        return _divided(total, [], divisor_override)
    return _divided(total, counted, 1) if is_padded else _divided(total, [], sympy.prod(kernel))


def adaptive_average_pool(x: TensorBox, output_size: Sequence[int]) -> TensorBox:
    """Lower `aten._adaptive_avg_pool2d` and `_adaptive_avg_pool3d`."""

    def span_of(size: sympy.Expr, count: int) -> Span:
        return lambda at: (FloorDiv(at * size, count), FloorDiv((at + 1) * size + count - 1, count))

    pairs = list(zip(x.get_size()[-len(output_size) :], output_size, strict=True))
    spans = [span_of(size, count) for size, count in pairs]
    is_even = [V.graph.sizevars.statically_known_multiple_of(size, count) for size, count in pairs]
    # Uneven windows differ in size; this is the most that one can have.
    windows = [
        FloorDiv(size, count) if even else FloorDiv(size + count - 1, count) + 1
        for (size, count), even in zip(pairs, is_even, strict=True)
    ]
    starts = [lambda position, span=span: span(position)[0] for span in spans]
    return _divided(_over_windows(x, windows, starts, None if all(is_even) else spans), spans, 1)


def _over_windows(
    x: TensorBox,
    windows: Sequence[sympy.Expr],
    starts: Sequence[Callable[[sympy.Expr], sympy.Expr]],
    spans: Sequence[Span] | None,
) -> TensorBox:
    """Sum windows of `x` of these sizes from `starts`; with `spans`, only elements within them."""
    rank = len(windows)
    x.realize()
    load = x.make_loader()
    shape = ir.convert_shape_to_inductor(V.graph.current_node.meta["val"].shape)
    ranges = [named_size(size) for size in shape]

    def element(index: Sequence[sympy.Expr], reduced: Sequence[sympy.Expr]) -> Any:
        where = [start(i) + r for start, i, r in zip(starts, index[-rank:], reduced, strict=True)]
        conditions = []
        for position, span, i in zip(where, spans or (), index[-rank:], strict=False):
            first, stop = span(i)
            at = ops.index_expr(position, torch.int64)
            low = ops.ge(at, ops.index_expr(first, torch.int64))
            conditions.append(ops.and_(low, ops.lt(at, ops.index_expr(stop, torch.int64))))
        return masked_load(conditions, lambda: load([*index[:-rank], *where]))

    with config.patch(unroll_reductions_threshold=_UNROLLED):
        return make_reduction("sum", x, element, ranges, windows, input_node=x)


def masked_load(conditions: Sequence[Any], load: Callable[[], Any]) -> Any:
    """The loaded value where all conditions hold, else 0."""
    return ops.masked(functools.reduce(ops.and_, conditions), load, 0.0) if conditions else load()


def make_reduction(
    kind: str,
    x: TensorBox,
    element: Callable[..., Any],
    ranges: Sequence[sympy.Expr],
    reduced: Sequence[sympy.Expr],
    input_node: TensorBox | None = None,
) -> TensorBox:
    """A reduction with the device and dtype of `x`, with a buffer of its own unless Inductor unrolls it."""
    result = Reduction.create(
        device=x.get_device(), dst_dtype=x.get_dtype(), src_dtype=x.get_dtype(), inner_fn=element, ranges=list(ranges),
        reduction_ranges=list(reduced), reduction_type=kind, input_node=input_node,
    )  # fmt: skip
    if isinstance(result.data.data, Reduction):
        result.realize()
    return result


def _divided(total: TensorBox, spans: Sequence[Span], divisor: sympy.Expr) -> TensorBox:
    """Divide `total` by the number of elements in each window, dimension by dimension, and by `divisor`."""
    load, dtype = total.make_loader(), total.get_dtype()

    def mean(index: Sequence[sympy.Expr]) -> Any:
        value = load(index)
        for span, position in zip(spans, index[len(index) - len(spans) :], strict=True):
            first, stop = span(position)
            value = ops.truediv(value, ops.index_expr(stop - first, dtype))
        return value if divisor == 1 else ops.truediv(value, ops.constant(int(divisor), dtype))

    return Pointwise.create(device=total.get_device(), dtype=dtype, inner_fn=mean, ranges=list(total.get_size()))


def each(value: Sequence[int], rank: int) -> list[int]:
    """One value for each dimension."""
    return list(value) * rank if len(value) == 1 else list(value)
