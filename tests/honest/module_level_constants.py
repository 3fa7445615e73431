# /// case
# reference = "piecewise"
# shows = "tl.constexpr constants of the file in every position"
# ///

"""Constants of the file are tl.constexpr, on either side of operators, as arguments, in branches and loops."""

import torch
import torch.nn as nn
import triton
import triton.language as tl

HALF: tl.constexpr = tl.constexpr(0.5)
SLOPE = tl.constexpr(1.5)
QUARTER = tl.constexpr(0.25)
LOW = tl.constexpr(-3.0)
STEPS = tl.constexpr(4)
DOUBLE = tl.constexpr(True)


@triton.jit
def piecewise(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    for step in range(STEPS):
        i = (tl.program_id(0) * STEPS + step) * BLOCK + tl.arange(0, BLOCK)
        keep = n > i
        x = tl.load(x_ptr + i, mask=keep, other=HALF)
        y = tl.where(x > HALF, SLOPE * x, QUARTER - x)
        if DOUBLE:
            y = (STEPS / 2) * y
        c = tl.minimum(tl.maximum(x, LOW), HALF)
        c = tl.where(x < LOW, LOW, c)
        c += tl.full((BLOCK,), HALF, tl.float32) - HALF
        c = -HALF * c / (-HALF)
        tl.store(y_ptr + i, y + c, mask=keep)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        piecewise[(triton.cdiv(x.numel(), 4 * 128),)](x, y, x.numel(), BLOCK=128)
        return y
