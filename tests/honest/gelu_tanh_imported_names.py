# /// case
# reference = "gelu_tanh"
# shows = "functions of the language imported by name"
# ///

"""Functions of the language are imported by name, and the annotation of a constant is a string."""

import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language import arange, load, program_id, store
from triton.language.extra import libdevice
from triton.language.math import fma


@triton.jit
def gelu(x_ptr, out_ptr, n, BLOCK: "tl.constexpr"):
    at = program_id(0) * BLOCK + arange(0, BLOCK)
    x = load(x_ptr + at, mask=at < n, other=0.0)
    inner = fma(x * x, x * 0.044715, x) * 0.7978845608028654
    store(out_ptr + at, 0.5 * x * (1.0 + libdevice.tanh(inner)), mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        gelu[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
        return out
