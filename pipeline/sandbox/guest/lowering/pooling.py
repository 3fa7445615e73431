"""Poolings as one reduction over a window each, whatever its size.

Inductor leaves large and uneven windows to the library, and divides by the number of elements in a window that
reaches over the edge as one polynomial of both coordinates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import sympy
import torch
from torch._inductor import config, ir
from torch._inductor.ir import Pointwise, Reduction, TensorBox
from torch._inductor.virtualized import V, ops
from torch.utils._sympy.functions import FloorDiv

from .sizes import named_size

_UNROLLED = 25  # elements of a window that are loaded one after the other

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
    """`aten.avg_pool2d` and `avg_pool3d`."""
    rank = len(V.graph.current_node.args[1])
    kernel, padding = each(kernel_size, rank), each(padding, rank)
    stride = each(stride, rank) if stride else kernel
    sizes = x.get_size()[-rank:]

    def span(dim: int, position: sympy.Expr, edge: int) -> tuple[sympy.Expr, sympy.Expr]:
        start = position * stride[dim] - padding[dim]
        if not (padding[dim] or ceil_mode):
            return start, start + kernel[dim]
        stop = sympy.Min(start + kernel[dim], sizes[dim] + edge)
        return (start if edge else sympy.Max(start, 0)), stop

    inside = [lambda position, dim=dim: span(dim, position, 0) for dim in range(rank)]
    counted = [
        lambda position, dim=dim: span(dim, position, padding[dim] if count_include_pad else 0) for dim in range(rank)
    ]
    starts = [lambda position, dim=dim: position * stride[dim] - padding[dim] for dim in range(rank)]
    is_padded = any(padding) or ceil_mode
    total = _over_windows("sum", x, kernel, starts, inside if is_padded else None)
    if divisor_override is not None:
        return _divided(total, [], divisor_override)
    return _divided(total, counted, 1) if is_padded else _divided(total, [], sympy.prod(kernel))


def adaptive_average_pool(x: TensorBox, output_size: Sequence[int]) -> TensorBox:
    """`aten._adaptive_avg_pool2d` and `_adaptive_avg_pool3d`."""
    spans = _adaptive_spans(x, output_size)
    return _divided(_adaptive("sum", x, output_size, spans), spans, 1)


def _adaptive_spans(x: TensorBox, output_size: Sequence[int]) -> list[Span]:
    def span_of(size: sympy.Expr, count: int) -> Span:
        return lambda at: (FloorDiv(at * size, count), FloorDiv((at + 1) * size + count - 1, count))

    return list(map(span_of, x.get_size()[-len(output_size) :], output_size))


def _adaptive(kind: str, x: TensorBox, output_size: Sequence[int], spans: Sequence[Span]) -> TensorBox:
    sizes = x.get_size()[-len(output_size) :]
    windows = []
    for size, count in zip(sizes, output_size, strict=True):
        is_even = V.graph.sizevars.statically_known_multiple_of(size, count)
        # Uneven windows have different sizes, the largest at most this.
        windows.append(FloorDiv(size, count) if is_even else FloorDiv(size + count - 1, count) + 1)
    starts = [lambda position, span=span: span(position)[0] for span in spans]
    is_even = all(V.graph.sizevars.statically_known_multiple_of(s, c) for s, c in zip(sizes, output_size, strict=True))
    return _over_windows(kind, x, windows, starts, None if is_even else spans)


def _over_windows(
    kind: str,
    x: TensorBox,
    windows: Sequence[sympy.Expr],
    starts: Sequence[Callable[[sympy.Expr], sympy.Expr]],
    spans: Sequence[Span] | None,
) -> TensorBox:
    """Reduces `windows` of `x` from `starts`; if there are `spans`, only what lies in them."""
    rank = len(windows)
    x.realize()
    load = x.make_loader()
    shape = ir.convert_shape_to_inductor(V.graph.current_node.meta["val"].shape)
    ranges = [named_size(size) for size in shape]

    def element(index: Sequence[sympy.Expr], reduced: Sequence[sympy.Expr]) -> Any:
        where = [start(i) + r for start, i, r in zip(starts, index[-rank:], reduced, strict=True)]
        if spans is None:
            return load([*index[:-rank], *where])
        inside = None
        for position, span, i in zip(where, spans, index[-rank:], strict=True):
            first, stop = span(i)
            at = ops.index_expr(position, torch.int64)
            test = ops.and_(
                ops.ge(at, ops.index_expr(first, torch.int64)), ops.lt(at, ops.index_expr(stop, torch.int64))
            )
            inside = test if inside is None else ops.and_(inside, test)
        return ops.masked(inside, lambda: load([*index[:-rank], *where]), 0.0)

    with config.patch(unroll_reductions_threshold=_UNROLLED):
        result = Reduction.create(
            device=x.get_device(), dst_dtype=x.get_dtype(), src_dtype=x.get_dtype(), inner_fn=element,
            ranges=ranges, reduction_ranges=list(windows), reduction_type=kind, input_node=x,
        )  # fmt: skip
    if isinstance(result.data.data, Reduction):
        result.realize()
    return result


def _divided(total: TensorBox, spans: Sequence[Span], divisor: sympy.Expr) -> TensorBox:
    """`total` by the number of elements in each window, one dimension after the other, and by `divisor`."""
    load, dtype = total.make_loader(), total.get_dtype()

    def mean(index: Sequence[sympy.Expr]) -> Any:
        value = load(index)
        for span, position in zip(spans, index[len(index) - len(spans) :], strict=True):
            first, stop = span(position)
            value = ops.truediv(value, ops.index_expr(stop - first, dtype))
        return value if divisor == 1 else ops.truediv(value, ops.constant(int(divisor), dtype))

    return Pointwise.create(device=total.get_device(), dtype=dtype, inner_fn=mean, ranges=list(total.get_size()))


def each(value: Sequence[int], rank: int) -> list[int]:
    return list(value) * rank if len(value) == 1 else list(value)
