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
    """Those of `x`, `weight` and bias, None for those that `output_mask` does not ask for. Shapes as in `operators`."""
    rank = x.dim() - 2
    stride, padding, dilation = (list(v) * (rank if len(v) == 1 else 1) for v in (stride, padding, dilation))
    of_x = of_weight = of_bias = None
    if output_mask[0] and transposed:
        of_x = aten.convolution(gradient, weight, None, stride, padding, dilation, False, [0] * rank, groups)
    elif output_mask[0]:
        left = [
            x.shape[2 + i]
            - ((gradient.shape[2 + i] - 1) * stride[i] - 2 * padding[i] + dilation[i] * (weight.shape[2 + i] - 1) + 1)
            for i in range(rank)
        ]
        of_x = aten.convolution(gradient, weight, None, stride, padding, dilation, True, left, groups)
    if output_mask[1]:
        moved, still = (gradient, x) if transposed else (x, gradient)
        of_weight = _of_weight(moved, still, weight.shape[2:], stride, padding, dilation, groups)
    if output_mask[2]:
        of_bias = gradient.sum([0, *range(2, rank + 2)])
    return of_x, of_weight, of_bias


def _of_weight(
    moved: Tensor,
    still: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Tensor:
    """What the kernel walks over, with what it makes of it as the kernel: batch and channels change places.

    `moved` is `(batch, groups * in, *sizes)`, `still` is `(batch, groups * out, *pixels)`; gives
    `(groups * out, in, *kernel)`.
    """
    batch, channels, *sizes = moved.shape
    walked = moved.reshape(batch, groups, channels // groups, *sizes).movedim(2, 0).transpose(1, 2)
    walked = walked.reshape(channels // groups, groups * batch, *sizes)
    filters = still.transpose(0, 1)
    result = aten.convolution(walked, filters, None, dilation, padding, stride, False, [0] * len(kernel), groups)
    for axis, size in enumerate(kernel):
        result = result.narrow(2 + axis, 0, size)
    return result.transpose(0, 1)
