# /// case
# reference = "channels_last_scale"
# shows = "strides as arguments and 64-bit offsets"
# ///

"""Strides of input and output are passed, offsets are of 64 bits."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale(x, w, y, total, C, H, W, s0, s1, s2, s3, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    ok = i < total
    c = i % C
    col = (i // C) % W
    line = (i // (C * W)) % H
    n = i // (C * W * H)
    v = tl.load(x + n * s0 + c * s1 + line * s2 + col * s3, mask=ok)
    tl.store(y + i, v * tl.load(w + c, mask=ok), mask=ok)


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels, 1, 1))

    def forward(self, x):
        n, c, h, w = x.shape
        y = torch.empty(n, h, w, c, device=x.device, dtype=x.dtype)
        scale[((y.numel() + 127) // 128,)](x, self.weight, y, y.numel(), c, h, w, *x.stride(), BLOCK=128)
        return y
