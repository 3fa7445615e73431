# /// case
# reference = "histogram"
# shows = "one integer atomic for each element"
# ///

"""One atomic for each element, into 64-bit zeros."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def count(x_ptr, bins_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    x = tl.load(x_ptr + i, mask=inside, other=0)
    tl.atomic_add(bins_ptr + x, tl.full((BLOCK,), 1, tl.int64), mask=inside)


class ModelNew(nn.Module):
    def __init__(self, bins):
        super().__init__()
        self.bins = bins

    def forward(self, x):
        out = torch.zeros(self.bins, dtype=torch.int64, device=x.device)
        count[(triton.cdiv(x.numel(), 64),)](x.reshape(-1), out, x.numel(), BLOCK=64)
        return out
