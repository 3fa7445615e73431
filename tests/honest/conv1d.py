# /// case
# reference = "conv1d"
# shows = "a convolution over one axis"
# ///

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def conv1d(x_ptr, weight_ptr, bias_ptr, out_ptr, length, inner, outer, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    """One program for a block of positions of one output channel of one sample."""
    sample, channel = tl.program_id(0) // outer, tl.program_id(0) % outer
    position = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for source in range(0, inner):
        for tap in tl.static_range(WIDTH):
            at = position + tap - WIDTH // 2
            x = tl.load(x_ptr + (sample * inner + source) * length + at, mask=(at >= 0) & (at < length), other=0.0)
            total += x * tl.load(weight_ptr + (channel * inner + source) * WIDTH + tap)
    total += tl.load(bias_ptr + channel)
    tl.store(out_ptr + (sample * outer + channel) * length + position, total, mask=position < length)


class ModelNew(nn.Module):
    def __init__(self, inner, outer, width):
        super().__init__()
        self.conv = nn.Conv1d(inner, outer, width, padding=width // 2)

    def forward(self, x):
        weight, bias = self.conv.weight, self.conv.bias
        batch, inner, length = x.shape
        outer, _, width = weight.shape
        out = torch.empty((batch, outer, length), device=x.device, dtype=x.dtype)
        grid = (batch * outer, triton.cdiv(length, 32))
        conv1d[grid](x, weight, bias, out, length, inner, outer, WIDTH=width, BLOCK=32)
        return out
