# /// case
# reference = "layer_norm"
# shows = "one of two kernels, picked by the length of the row"
# ///

"""Picks a kernel of two by the length of the row."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def norm_short(x_ptr, w_ptr, b_ptr, y_ptr, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    x = tl.load(x_ptr + row * n + cols, mask=mask, other=0.0)
    mean = tl.sum(x) / n
    centred = tl.where(mask, x - mean, 0.0)
    rstd = 1.0 / tl.sqrt(tl.sum(centred * centred) / n + eps)
    w = tl.load(w_ptr + cols, mask=mask)
    b = tl.load(b_ptr + cols, mask=mask)
    tl.store(y_ptr + row * n + cols, centred * rstd * w + b, mask=mask)


@triton.jit
def norm_long(x_ptr, w_ptr, b_ptr, y_ptr, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0)
    mean = tl.sum(total) / n
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0)
        squares += tl.where(cols < n, (x - mean) * (x - mean), 0.0)
    rstd = tl.rsqrt(tl.sum(squares) / n + eps)
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + cols, mask=cols < n)
        w, b = tl.load(w_ptr + cols, mask=cols < n), tl.load(b_ptr + cols, mask=cols < n)
        tl.store(y_ptr + row * n + cols, (x - mean) * rstd * w + b, mask=cols < n)


KERNELS = {"short": norm_short, "long": norm_long}


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = nn.LayerNorm(size)

    def forward(self, x):
        n = x.shape[-1]
        out = torch.empty_like(x)
        rows = x.numel() // n
        weight, bias, eps = self.norm.weight, self.norm.bias, self.norm.eps
        for name, block in (("short", triton.next_power_of_2(n)), ("long", 16)):
            kernel = KERNELS[name]
            kernel[(rows,)](x, weight, bias, out, n, eps, BLOCK=block)
        return out
