# /// case
# reference = "hardswish_bias"
# shows = "a three-dimensional grid"
# ///

"""A grid of samples, channels and blocks of pixels; the bias is a scalar in each program."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def hardswish(x_ptr, bias_ptr, out_ptr, channels, area, BLOCK: tl.constexpr):
    sample, channel, block = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    pixel = block * BLOCK + tl.arange(0, BLOCK)
    start = (sample * channels + channel) * area
    y = tl.load(x_ptr + start + pixel, mask=pixel < area, other=0.0) + tl.load(bias_ptr + channel)
    gate = tl.clamp(y + 3.0, 0.0, 6.0) / 6.0
    tl.store(out_ptr + start + pixel, y * gate, mask=pixel < area)


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, x):
        batch, channels, height, width = x.shape
        out = torch.empty_like(x)
        grid = (batch, channels, triton.cdiv(height * width, 32))
        hardswish[grid](x, self.bias, out, channels, height * width, BLOCK=32)
        return out
