"""The gradients of a convolution, as convolutions."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

aten = torch.ops.aten


def convolution_backward(
    gradient: Tensor,
    x: Tensor,
    weight: Tensor,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """The gradients of `x`, `weight` and the bias; None where `output_mask` is false.

    Shapes are those of `operator_lowerings`.
    """
    rank = x.dim() - 2
    stride, padding, dilation = (list(v) * (rank if len(v) == 1 else 1) for v in (stride, padding, dilation))
    x_gradient = weight_gradient = bias_gradient = None
    if output_mask[0]:
        left = [0] * rank
        for i in () if transposed else range(rank):
            span = (
                (gradient.shape[2 + i] - 1) * stride[i] - 2 * padding[i] + dilation[i] * (weight.shape[2 + i] - 1) + 1
            )
            left[i] = x.shape[2 + i] - span
        x_gradient = aten.convolution(gradient, weight, None, stride, padding, dilation, not transposed, left, groups)
    if output_mask[1]:
        walked, filters = (gradient, x) if transposed else (x, gradient)
        weight_gradient = _weight_gradient(walked, filters, weight.shape[2:], stride, padding, dilation, groups)
    if output_mask[2]:
        bias_gradient = gradient.sum([0, *range(2, rank + 2)])
    return x_gradient, weight_gradient, bias_gradient


def _weight_gradient(
    walked: Tensor,
    filters: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Tensor:
    """Convolve the tensor that the kernel walks over with the tensor at the other end; batch and channels swap.

    `walked` is `(batch, groups * in, *sizes)`, `filters` is `(batch, groups * out, *pixels)`; the result is
    `(groups * out, in, *kernel)`.
    """
    batch, channels, *sizes = walked.shape
    x = walked.reshape(batch, groups, channels // groups, *sizes).movedim(2, 0).transpose(1, 2)
    x = x.reshape(channels // groups, groups * batch, *sizes)
    weight = filters.transpose(0, 1)
    result = aten.convolution(x, weight, None, dilation, padding, stride, False, [0] * len(kernel), groups)
    for axis, size in enumerate(kernel):
        result = result.narrow(2 + axis, 0, size)
    return result.transpose(0, 1)
