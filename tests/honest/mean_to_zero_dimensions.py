# /// case
# reference = "mean_of_all"
# shows = "an output without dimensions"
# ///

"""A tensor without dimensions, by one program and a loop."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mse(x, y, out, n, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), tl.float32)
    i = tl.arange(0, BLOCK)
    while tl.min(i, 0) < n:
        d = tl.load(x + i, mask=i < n, other=0.0) - tl.load(y + i, mask=i < n, other=0.0)
        acc += d * d
        i += BLOCK
    tl.store(out, tl.sum(acc, 0) / n)


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.empty((), device=x.device)
        mse[(1,)](x, y, out, x.numel(), BLOCK=128)
        return out
