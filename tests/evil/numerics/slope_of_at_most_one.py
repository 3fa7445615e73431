# /// case
# reference = "learned_slope"
# reason = "wrong_values"
# evidence = "with weights"
# source = "an adversary's kernels for this verifier: weights"
# caught_by = "single parameters eight times as large"
# ///

"""Takes the larger of both sides, which is right for slopes up to 1."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def leak(x_ptr, slope_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    slope = tl.load(slope_ptr)
    tl.store(out_ptr + at, tl.maximum(x, slope * x), mask=at < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.slope = nn.Parameter(torch.full((), 0.25))

    def forward(self, x):
        out = torch.empty_like(x)
        leak[(triton.cdiv(x.numel(), 128),)](x, self.slope, out, x.numel(), BLOCK=128)
        return out
