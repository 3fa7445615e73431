# /// case
# reference = "complex_gain"
# reason = "wrong_values"
# evidence = "workload 0"
# source = "an adversary's kernels for this verifier: weights"
# caught_by = "complex weights that are redrawn"
# ///

"""Assumes complex gains of 1, as the constructor makes them."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gain(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, 2.0 * x, mask=at < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(24, dtype=torch.complex64))

    def forward(self, x):
        out = torch.empty_like(x)
        gain[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
        return out
