"""Lowerings of operators that Inductor leaves to vendor libraries or lowers to code that is hard to read.

A convolution becomes one reduction: an implicit matrix multiplication, or a sum if the product would be narrow. Any
number of dimensions, strides, padding, dilation, groups and transposition works; later operators fuse into its kernel.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias
from unittest import mock

import sympy
import torch
from torch._inductor import ir, lowering
from torch._inductor.ir import TensorBox
from torch._inductor.virtualized import V, ops
from torch.utils._sympy.functions import FloorDiv, ModularIndexing

from .pooling import adaptive_average_pool, average_pool, each, make_reduction, masked_load
from .sizes import named_size

aten = torch.ops.aten
_Expr: TypeAlias = "sympy.Expr | int"

# With fewer output channels a group, or fewer taps times channels, the blocks of `tl.dot` would be mostly padding.
_MIN_DOT = 8


@contextlib.contextmanager
def pure_operators() -> Iterator[None]:
    """Install our lowerings in Inductor."""
    ours: dict[Any, Any] = {
        aten.convolution: _convolution,
        aten.addmm: _addmm,
        aten.avg_pool2d: average_pool,
        aten.avg_pool3d: average_pool,
        aten._adaptive_avg_pool2d: adaptive_average_pool,
        aten._adaptive_avg_pool3d: adaptive_average_pool,
    }
    ours |= {packet.default: function for packet, function in ours.items()}
    free = dict.fromkeys((aten.convolution, aten.convolution.default))  # no constraints on the strides of inputs
    with mock.patch.dict(lowering.lowerings, ours), mock.patch.dict(lowering._maybe_layout_constraints, free):
        yield


def _addmm(bias: TensorBox, a: TensorBox, b: TensorBox, *, beta: float = 1, alpha: float = 1) -> TensorBox:
    """Add the bias in the kernel of the matmul, not in each kernel that reads the result."""
    result = lowering.lowerings[aten.mm](a, b)
    if alpha != 1:
        result = lowering.lowerings[aten.mul](result, alpha)
    if beta != 1:
        bias = lowering.lowerings[aten.mul](bias, beta)
    result = lowering.lowerings[aten.add](result, bias)
    result.realize()
    return result


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
    """Convolve `x` `(batch, channels, *sizes)` to `(batch, out, *sizes)`.

    `weight` is `(out, channels / groups, *kernel)`, or `(channels, out / groups, *kernel)` if transposed.
    """
    x.realize()
    weight.realize()
    rank = len(x.get_size()) - 2
    stride, padding, dilation = (each(value, rank) for value in (stride, padding, dilation))
    batch, in_channels, *in_sizes = x.get_size()
    _, out_channels, *out_sizes = ir.convert_shape_to_inductor(V.graph.current_node.meta["val"].shape)
    out_sizes = [named_size(s) for s in out_sizes]
    kernel = weight.get_size()[2:]
    in_group, out_group = FloorDiv(in_channels, groups), FloorDiv(out_channels, groups)
    load_x, load_weight = x.make_loader(), weight.make_loader()

    def taps(position: Sequence[_Expr], tap: Sequence[_Expr]) -> tuple[list[_Expr], list[Any]]:
        """The input position that a tap of the kernel reads for an output position, and the conditions to read it."""
        where: list[_Expr] = []
        conditions: list[Any] = []
        for dim in range(rank):
            if transposed:
                ahead = position[dim] + padding[dim] - tap[dim] * dilation[dim]
                index: _Expr = FloorDiv(ahead, stride[dim])
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

    def element(n: _Expr, group: _Expr, channel: _Expr, position: Sequence[_Expr], tap: Sequence[_Expr]) -> Any:
        where, conditions = taps(position, tap)
        return masked_load(conditions, lambda: load_x([n, group * in_group + channel, *where]))

    def factor(group: _Expr, out: _Expr, channel: _Expr, tap: Sequence[_Expr]) -> Any:
        if transposed:
            return load_weight([group * in_group + channel, out, *tap])
        return load_weight([group * out_group + out, channel, *tap])

    depth = sympy.prod(kernel) * in_group
    use_dot = _at_least(out_group, _MIN_DOT) and _at_least(depth, _MIN_DOT)
    pixels = sympy.prod(out_sizes)
    blocks = batch * groups
    if pixels == 1:
        use_dot = use_dot and groups == 1 and _at_least(batch, 2)

    def dot(index: Sequence[_Expr], reduced: Sequence[_Expr]) -> Any:
        """A matmul for each block: weights `(out, depth)` with pixels `(depth, pixels)`."""
        *block, out, pixel = index
        n, group = (FloorDiv(block[0], groups), ModularIndexing(block[0], 1, groups)) if block else (0, 0)
        channel, *tap = _unflatten(reduced[0], [in_group, *kernel])
        position = _unflatten(pixel, out_sizes)
        return ops.dot(factor(group, out, channel, tap), element(n, group, channel, position, tap))

    def dot_of_one_pixel(index: Sequence[_Expr], reduced: Sequence[_Expr]) -> Any:
        """A matmul for outputs of one pixel: inputs `(batch, depth)` with weights `(depth, out)`."""
        n, out = index
        channel, *tap = _unflatten(reduced[0], [in_group, *kernel])
        return ops.dot(element(n, 0, channel, [0] * rank, tap), factor(0, out, channel, tap))

    def product(index: Sequence[_Expr], reduced: Sequence[_Expr]) -> Any:
        n, out, *position = index
        group, out = FloorDiv(out, out_group), ModularIndexing(out, 1, out_group)
        channel, *tap = reduced
        return ops.mul(factor(group, out, channel, tap), element(n, group, channel, position, tap))

    if use_dot and pixels == 1:
        result = make_reduction("dot", x, dot_of_one_pixel, [batch, out_channels], [depth])
    elif use_dot:
        result = make_reduction("dot", x, dot, [*([] if blocks == 1 else [blocks]), out_group, pixels], [depth])
    else:
        result = make_reduction("sum", x, product, [batch, out_channels, *out_sizes], [in_group, *kernel])
    if use_dot:
        result = lowering.lowerings[aten.view](result, [batch, out_channels, *out_sizes])
    if bias is not None:
        bias = lowering.lowerings[aten.view](bias, [out_channels] + [1] * rank)
        result = lowering.lowerings[aten.add](result, bias)
        result.realize()
    return result


def _at_least(size: _Expr, bound: int) -> bool:
    return V.graph.sizevars.statically_known_geq(size, bound)


def _unflatten(index: _Expr, sizes: Sequence[_Expr]) -> list[_Expr]:
    """The coordinates of a flat index in a contiguous shape."""
    coordinates: list[_Expr] = []
    inner = sympy.S.One
    for position, size in reversed(list(enumerate(sizes))):
        coordinates.append(ModularIndexing(index, inner, size) if position else FloorDiv(index, inner))
        inner = inner * size
    return coordinates[::-1]
