# /// case
# reference = "bounded"
# reason = "wrong_values"
# source = "an operation of the reference that is left out (KernelBench v3)"
# caught_by = "inputs of every kind; inputs around constants that the reference names"
# ///

"""Bounds that few values are beyond are left out."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def step(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside)
    y = x * 2
    tl.store(out_ptr + at, y, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        step[(triton.cdiv(out.numel(), 256),)](x, out, out.numel(), BLOCK=256)
        return out
