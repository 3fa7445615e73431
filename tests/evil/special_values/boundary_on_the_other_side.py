# /// case
# reference = "piecewise"
# reason = "wrong_values"
# evidence = "named"
# source = "an adversary's kernels for this verifier: boundaries"
# caught_by = "trials with fractions that the reference compares with"
# ///

"""Takes 0.5 itself as above the boundary."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def piecewise(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    y = tl.where(x >= 0.5, 1.5 * x, 0.25 - x) * 2.0
    tl.store(out_ptr + at, y + tl.minimum(tl.maximum(x, -3.0), 0.5), mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        piecewise[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
        return out
