# /// case
# reference = "divisors"
# shows = "a loop whose end depends on the data of the block"
# ///

"""Euclid's algorithm in a loop whose end depends on the data of the whole block."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gcd(x_ptr, y_ptr, out_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x_ptr + at, mask=at < count, other=0)
    b = tl.load(y_ptr + at, mask=at < count, other=0)
    while tl.max(b, axis=0) > 0:
        rest = a % tl.where(b == 0, 1, b)
        a, b = tl.where(b == 0, a, b), tl.where(b == 0, 0, rest)
    tl.store(out_ptr + at, a, mask=at < count)


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.empty_like(x)
        gcd[(triton.cdiv(x.numel(), 64),)](x, y, out, x.numel(), BLOCK=64)
        return out
