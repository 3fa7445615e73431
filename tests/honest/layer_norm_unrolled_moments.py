# /// case
# reference = "layer_norm"
# kernels = ["layer_norm"]
# shows = "moments of pieces of a row, merged by Welford's formula"
# ///

"""Moments over pieces of the row in an unrolled loop, merged as Welford's."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def merge(mean_a, m2_a, n_a, mean_b, m2_b, n_b):
    n = n_a + n_b
    delta = mean_b - mean_a
    share = tl.where(n == 0, 0.0, n_b / n)
    return mean_a + delta * share, m2_a + m2_b + delta * delta * n_a * share, n


@triton.jit
def layer_norm(x_ptr, w_ptr, b_ptr, out_ptr, size: tl.constexpr, eps: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x_ptr += row * size
    out_ptr += row * size
    mean = tl.zeros((BLOCK,), tl.float32)
    m2 = tl.zeros((BLOCK,), tl.float32)
    n = tl.zeros((BLOCK,), tl.float32)
    for start in tl.static_range(0, size, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < size, other=0.0)
        mean, m2, n = merge(mean, m2, n, x, tl.zeros_like(x), (at < size).to(tl.float32))
    mean, m2, n = tl.reduce((mean, m2, n), 0, merge)
    rstd = tl.rsqrt(m2 / n + eps)
    for start in tl.static_range(0, size, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < size)
        y = (x - mean) * rstd * tl.load(w_ptr + at, mask=at < size) + tl.load(b_ptr + at, mask=at < size)
        tl.store(out_ptr + at, y, mask=at < size)


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = nn.LayerNorm(size)

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        grid = (x.shape[:-1].numel(),)
        layer_norm[grid](x, self.norm.weight, self.norm.bias, out, x.shape[-1], self.norm.eps, BLOCK=16)
        return out
