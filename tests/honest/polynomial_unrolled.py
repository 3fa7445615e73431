# /// case
# reference = "polynomial"
# shows = "tl.static_range over a constant"
# ///

"""Horner's scheme, unrolled by tl.static_range over a number of terms that is a constant."""

import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def horner(x_ptr, coefficient_ptr, out_ptr, count, TERMS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = libdevice.tanh(tl.load(x_ptr + at, mask=at < count, other=0.0))
    total = tl.zeros_like(y)
    for term in tl.static_range(TERMS - 1, -1, -1):
        total = tl.fma(total, y, tl.load(coefficient_ptr + term) + tl.zeros_like(y))
    tl.store(out_ptr + at, total, mask=at < count)


class ModelNew(nn.Module):
    def __init__(self, terms):
        super().__init__()
        self.coefficients = nn.Parameter(torch.linspace(-1.0, 1.0, terms))

    def forward(self, x):
        out = torch.empty_like(x)
        terms = self.coefficients.shape[0]
        horner[(triton.cdiv(x.numel(), 64),)](x, self.coefficients, out, x.numel(), TERMS=terms, BLOCK=64)
        return out
