# /// case
# reference = "whole_numbers"
# reason = "wrong_values"
# evidence = "named"
# source = "an adversary's kernels for this verifier: boundaries"
# caught_by = "trials with halves, which the nudged runs leave as they are"
# ///

"""Rounds 0.5 and 2.5 up, where PyTorch rounds to even."""

import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def nearest(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, libdevice.round(x), mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        nearest[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
        return out
