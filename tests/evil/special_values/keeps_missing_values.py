# /// case
# reference = "missing_values"
# reason = "wrong_values"
# evidence = "special"
# source = "an adversary's kernels for this verifier: special values"
# caught_by = "trials with NaN where the module has a function of it"
# ///

"""Leaves NaN where the module has 0."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def double(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, 2.0 * x, mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        double[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
        return out
