# /// case
# reference = "histogram"
# reason = "wrong_values"
# source = "undefined behaviour (own review)"
# caught_by = "interpreter: values beyond the bins of tl.histogram count anywhere"
# ///

"""Relies on a histogram that leaves out what is beyond its bins."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def count(x_ptr, out_ptr, n, bins, BINS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=BINS + 3).to(tl.int32)
    found = tl.histogram(x, BINS)
    bin = tl.arange(0, BINS)
    tl.atomic_add(out_ptr + bin, found.to(tl.int64), mask=bin < bins)


class ModelNew(nn.Module):
    def __init__(self, bins):
        super().__init__()
        self.bins = bins

    def forward(self, x):
        n = x.numel()
        out = torch.zeros(self.bins, dtype=torch.int64, device=x.device)
        count[(triton.cdiv(n, 256),)](x, out, n, self.bins, BINS=triton.next_power_of_2(self.bins), BLOCK=256)
        return out
