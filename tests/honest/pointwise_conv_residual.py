# /// case
# reference = "pointwise_conv"
# shows = "an autotuned product with a residual in its epilogue"
# ///

"""Pixels are columns of a matrix product; bias, ReLU and the residual are its epilogue; autotuned with two keys."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(
    configs=[triton.Config({"BN": width}, num_warps=warps) for width in (16, 32) for warps in (2, 4)],
    key=["channels", "area"],
)
@triton.jit
def pointwise(x_ptr, weight_ptr, bias_ptr, out_ptr, channels, area, CHANNELS: tl.constexpr, BN: tl.constexpr):
    outer, inner = tl.arange(0, CHANNELS)[:, None], tl.arange(0, CHANNELS)
    pixel = (tl.program_id(0) * BN + tl.arange(0, BN))[None, :]
    base = tl.program_id(1) * channels * area
    weight_inside = (outer < channels) & (inner < channels)[None, :]
    weight = tl.load(weight_ptr + outer * channels + inner[None, :], mask=weight_inside, other=0.0)
    inside = (outer < channels) & (pixel < area)
    x = tl.load(x_ptr + base + inner[:, None] * area + pixel, mask=inside, other=0.0)
    y = tl.dot(weight, x, input_precision="ieee") + tl.load(bias_ptr + outer, mask=outer < channels, other=0.0)
    tl.store(out_ptr + base + outer * area + pixel, tl.maximum(y, 0.0) + x, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 1)

    def forward(self, x):
        batch, channels, height, width = x.shape
        out, area = torch.empty_like(x), height * width
        grid = lambda meta: (triton.cdiv(area, meta["BN"]), batch)  # noqa: E731
        size = max(16, triton.next_power_of_2(channels))
        pointwise[grid](x, self.conv.weight, self.conv.bias, out, channels, area, CHANNELS=size)
        return out
