# /// case
# reference = "unit_vectors"
# shows = "a reduction over the middle axis by strides"
# ///

"""A reduction over the middle axis: a tile with channels down and pixels across, all four strides as arguments."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def unit_vectors(
    x_ptr, out_ptr, channels, height, width, stride_n, stride_c, stride_h, stride_w,
    CHANNELS: tl.constexpr, PIXELS: tl.constexpr,
):  # fmt: skip
    pixel = tl.program_id(1) * PIXELS + tl.arange(0, PIXELS)
    channel = tl.arange(0, CHANNELS)
    at = tl.program_id(0) * stride_n + channel[:, None] * stride_c
    at += ((pixel // width) * stride_h + (pixel % width) * stride_w)[None, :]
    inside = (channel < channels)[:, None] & (pixel < height * width)[None, :]
    x = tl.load(x_ptr + at, mask=inside, other=0.0)
    length = tl.sqrt(tl.sum(x * x, axis=0, keep_dims=True))
    tl.store(out_ptr + at, x / tl.maximum(length, 1e-12), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        batch, channels, height, width = x.shape
        out = torch.empty_like(x)
        grid = (batch, triton.cdiv(height * width, 16))
        rows = triton.next_power_of_2(channels)
        unit_vectors[grid](x, out, channels, height, width, *x.stride(), CHANNELS=rows, PIXELS=16)
        return out
