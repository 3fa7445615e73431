# /// case
# reference = "hardswish_bias"
# shows = "a bias that is broadcast over a tile"
# ///

"""Tiles of channels and pixels, with the bias broadcast over a column."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def hardswish_tile(x_ptr, bias_ptr, out_ptr, channels, area, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    channel = tl.arange(0, ROWS)
    pixel = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    bias = tl.load(bias_ptr + channel, mask=channel < channels, other=0.0)
    inside = (channel[:, None] < channels) & (pixel[None, :] < area)
    at = tl.program_id(0) * channels * area + channel[:, None] * area + pixel[None, :]
    y = tl.load(x_ptr + at, mask=inside, other=0.0) + tl.expand_dims(bias, 1)
    gate = tl.minimum(tl.maximum(y + 3.0, 0.0), 6.0)
    tl.store(out_ptr + at, y * gate * (1.0 / 6.0), mask=inside)


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, x):
        channels, area = x.shape[1], x.shape[2] * x.shape[3]
        out = torch.empty_like(x)
        grid = (x.shape[0], triton.cdiv(area, 16))
        rows = triton.next_power_of_2(channels)
        hardswish_tile[grid](x, self.bias, out, channels, area, ROWS=rows, COLUMNS=16)
        return out
