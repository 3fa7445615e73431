# /// case
# reference = "whole_numbers"
# reason = "wrong_values"
# evidence = "beyond"
# source = "an adversary's kernels for this verifier: special values"
# caught_by = "calls with numbers beyond int32"
# ///

"""Rounds to even, but through an integer that ends at 2^31."""

import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def nearest(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    whole = libdevice.rint(x).to(tl.int32)
    tl.store(out_ptr + at, whole.to(tl.float32), mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        nearest[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
        return out
