# /// case
# reference = "complex_product"
# shows = "tl.split and tl.interleave on pairs"
# ///

"""Pairs are taken apart with tl.reshape and tl.split, and put together with tl.interleave."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def multiply(x_ptr, y_ptr, out_ptr, count, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK % 2 == 0)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < count, other=0.0)
    y = tl.load(y_ptr + at, mask=at < count, other=0.0)
    a, b = tl.split(tl.reshape(x, (BLOCK // 2, 2)))
    c, d = tl.split(y.reshape(BLOCK // 2, 2))
    tl.store(out_ptr + at, tl.interleave(a * c - b * d, a * d + b * c), mask=at < count)


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.empty_like(x)
        multiply[(triton.cdiv(x.numel(), 64),)](x, y, out, x.numel(), BLOCK=64)
        return out
