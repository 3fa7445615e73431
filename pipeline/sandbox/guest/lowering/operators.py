"""Operators that Inductor leaves to vendor libraries, or lowers to what is hard to read.

A convolution becomes one reduction: an implicit matrix multiplication, or a sum where that would be narrow. Any number
of dimensions, strides, padding, dilation, groups and transposition; what follows is fused into its kernel.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any
from unittest import mock

import sympy
import torch
from torch._inductor import ir, lowering
from torch._inductor.ir import Reduction, TensorBox
from torch._inductor.virtualized import V, ops
from torch.utils._sympy.functions import FloorDiv, ModularIndexing

from .sizes import named_size

aten = torch.ops.aten

# Below this many output channels a group, or taps times channels, `tl.dot`'s blocks of 16 would be mostly padding.
_MIN_DOT = 8


@contextlib.contextmanager
def pure_operators() -> Iterator[None]:
    """Lets Inductor lower them in our way."""
    ours = {aten.convolution: _convolution, aten.addmm: _addmm, aten.avg_pool2d: _avg_pool2d}
    ours |= {packet.default: function for packet, function in ours.items()}
    free = dict.fromkeys((aten.convolution, aten.convolution.default))  # of constraints on its inputs' strides
    with (
        mock.patch.dict(lowering.lowerings, ours),
        mock.patch.dict(lowering._maybe_layout_constraints, free),
    ):
        yield


def _addmm(bias: TensorBox, a: TensorBox, b: TensorBox, *, beta: float = 1, alpha: float = 1) -> TensorBox:
    """A matmul with its bias added in the same kernel, rather than in each kernel that reads the result."""
    result = lowering.lowerings[aten.mm](a, b)
    if alpha != 1:
        result = lowering.lowerings[aten.mul](result, alpha)
    if beta != 1:
        bias = lowering.lowerings[aten.mul](bias, beta)
    result = lowering.lowerings[aten.add](result, bias)
    result.realize()
    return result


_inductor_avg_pool2d = lowering.lowerings[aten.avg_pool2d.default]


def _avg_pool2d(
    x: TensorBox,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> TensorBox:
    """As Inductor has it, but for windows that reach over the edge: their size is a product of two, not one sum."""
    given = (x, kernel_size, stride, padding, ceil_mode, count_include_pad)
    kernel, padding = _each(kernel_size, 2), _each(padding, 2)
    stride = _each(stride, 2) if stride else kernel
    if divisor_override is not None or not (any(padding) or ceil_mode):
        return _inductor_avg_pool2d(*given, divisor_override)
    total = _inductor_avg_pool2d(*given, 1)
    sizes = x.get_size()[-2:]

    load = total.make_loader()

    def mean(index: Sequence[sympy.Expr]) -> Any:
        value = load(index)
        for position, size, window, step, pad in zip(index[-2:], sizes, kernel, stride, padding, strict=True):
            start = position * step - pad
            stop = sympy.Min(start + window, size + (pad if count_include_pad else 0))
            start = start if count_include_pad else sympy.Max(start, 0)
            value = ops.truediv(value, ops.index_expr(stop - start, x.get_dtype()))
        return value

    return ir.Pointwise.create(
        device=x.get_device(), dtype=x.get_dtype(), inner_fn=mean, ranges=list(total.get_size())
    )


def _convolution(
    x: TensorBox,
    weight: TensorBox,
    bias: TensorBox | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> TensorBox:
    """`(batch, channels, *sizes)` with `(out, channels / groups, *kernel)`, or transposed `(channels, out / groups,
    *kernel)`, gives `(batch, out, *sizes)`."""
    x.realize()
    weight.realize()
    rank = len(x.get_size()) - 2
    stride, padding, dilation = (_each(value, rank) for value in (stride, padding, dilation))
    batch, in_channels, *in_sizes = x.get_size()
    _, out_channels, *out_sizes = ir.convert_shape_to_inductor(V.graph.current_node.meta["val"].shape)
    out_sizes = [named_size(s) for s in out_sizes]
    kernel = weight.get_size()[2:]
    in_group, out_group = FloorDiv(in_channels, groups), FloorDiv(out_channels, groups)
    load_x, load_weight = x.make_loader(), weight.make_loader()

    def taps(position: Sequence[sympy.Expr], tap: Sequence[sympy.Expr]) -> tuple[list[sympy.Expr], list]:
        """Where a tap of the kernel reads for an output position, and the conditions under which it does."""
        where, conditions = [], []
        for dim in range(rank):
            if transposed:
                ahead = position[dim] + padding[dim] - tap[dim] * dilation[dim]
                index = FloorDiv(ahead, stride[dim])
                if stride[dim] != 1:
                    phase = ops.index_expr(ModularIndexing(ahead, 1, stride[dim]), torch.int32)
                    conditions.append(ops.eq(phase, ops.constant(0, torch.int32)))
            else:
                ahead = index = position[dim] * stride[dim] - padding[dim] + tap[dim] * dilation[dim]
            if transposed or padding[dim] != 0:
                low = ops.ge(ops.index_expr(ahead, torch.int64), ops.constant(0, torch.int64))
                high = ops.lt(ops.index_expr(index, torch.int64), ops.index_expr(in_sizes[dim], torch.int64))
                conditions += [low, high]
            where.append(index)
        return where, conditions

    def element(n, group, channel, position, tap):
        where, conditions = taps(position, tap)
        load = lambda: load_x([n, group * in_group + channel, *where])  # noqa: E731
        if not conditions:
            return load()
        inside = conditions[0]
        for condition in conditions[1:]:
            inside = ops.and_(inside, condition)
        return ops.masked(inside, load, 0.0)

    def factor(group, out, channel, tap):
        if transposed:
            return load_weight([group * in_group + channel, out, *tap])
        return load_weight([group * out_group + out, channel, *tap])

    depth = sympy.prod(kernel) * in_group
    use_dot = _at_least(out_group, _MIN_DOT) and _at_least(depth, _MIN_DOT)
    pixels = sympy.prod(out_sizes)

    def dot(index, reduced):
        block, out, pixel = index
        n, group = FloorDiv(block, groups), ModularIndexing(block, 1, groups)
        channel, *tap = _unflatten(reduced[0], [in_group, *kernel])
        position = _unflatten(pixel, out_sizes)
        return ops.dot(factor(group, out, channel, tap), element(n, group, channel, position, tap))

    def product(index, reduced):
        n, out, *position = index
        group, out = FloorDiv(out, out_group), ModularIndexing(out, 1, out_group)
        channel, *tap = reduced
        return ops.mul(factor(group, out, channel, tap), element(n, group, channel, position, tap))

    common = {
        "device": x.get_device(), "dst_dtype": x.get_dtype(), "src_dtype": x.get_dtype(),
        "reduction_hint": ir.ReductionHint.DEFAULT,
    }  # fmt: skip
    if use_dot:
        result = Reduction.create(
            inner_fn=dot, ranges=[batch * groups, out_group, pixels], reduction_ranges=[depth],
            reduction_type="dot", **common,
        )  # fmt: skip
    else:
        result = Reduction.create(
            inner_fn=product, ranges=[batch, out_channels, *out_sizes], reduction_ranges=[in_group, *kernel],
            reduction_type="sum", **common,
        )  # fmt: skip
    if isinstance(result.data.data, Reduction):  # not unrolled
        result.realize()
    if use_dot:
        result = lowering.lowerings[aten.view](result, [batch, out_channels, *out_sizes])
    if bias is not None:
        bias = lowering.lowerings[aten.view](bias, [out_channels] + [1] * rank)
        result = lowering.lowerings[aten.add](result, bias)
        result.realize()
    return result


def _each(value: Sequence[int], rank: int) -> list[int]:
    return list(value) * rank if len(value) == 1 else list(value)


def _at_least(size: sympy.Expr, bound: int) -> bool:
    return V.graph.sizevars.statically_known_geq(size, bound)


def _unflatten(index: sympy.Expr, sizes: Sequence[sympy.Expr]) -> list[sympy.Expr]:
    """The coordinates of a flat index in a contiguous shape."""
    coordinates, inner = [], sympy.S.One
    for position, size in reversed(list(enumerate(sizes))):
        coordinates.append(ModularIndexing(index, inner, size) if position else FloorDiv(index, inner))
        inner = inner * size
    return coordinates[::-1]
