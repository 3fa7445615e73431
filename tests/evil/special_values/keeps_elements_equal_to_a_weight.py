# /// case
# reference = "above_a_weight"
# reason = "wrong_values"
# evidence = "echoed"
# source = "an adversary's kernels for this verifier: what no call combined"
# caught_by = "rows that have the values of a weight"
# ///

"""It keeps an element that equals the weight."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def keep(x_ptr, least_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, tl.where(x >= tl.load(least_ptr), x, 0.0), mask=at < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.least = nn.Parameter(torch.tensor(0.5))

    def forward(self, x):
        out = torch.empty_like(x)
        keep[(triton.cdiv(x.numel(), 256),)](x, self.least, out, x.numel(), BLOCK=256)
        return out
