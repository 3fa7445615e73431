# /// case
# reference = "avg_pool"
# shows = "windows as the second axis of a tile"
# ///

"""Windows are the second axis of a tile, padded to a power of two and summed at once."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def avg_pool(x_ptr, out_ptr, length, out_length, WIDTH: tl.constexpr, TAPS: tl.constexpr, BLOCK: tl.constexpr):
    plane = tl.program_id(0)
    position = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tap = tl.arange(0, TAPS)
    at = position[:, None] * 2 - 1 + tap[None, :]
    inside = (at >= 0) & (at < length) & (tap < WIDTH)[None, :]
    x = tl.load(x_ptr + plane * length + at, mask=inside, other=0.0)
    tl.store(out_ptr + plane * out_length + position, tl.sum(x, 1) / WIDTH, mask=position < out_length)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = nn.AvgPool1d(3, stride=2, padding=1)

    def forward(self, x):
        batch, channels, length = x.shape
        out_length = (length - 1) // 2 + 1
        out = torch.empty((batch, channels, out_length), device=x.device, dtype=x.dtype)
        grid = (batch * channels, triton.cdiv(out_length, 16))
        avg_pool[grid](x, out, length, out_length, WIDTH=3, TAPS=4, BLOCK=16)
        return out
