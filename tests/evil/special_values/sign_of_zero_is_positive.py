# /// case
# reference = "signs"
# reason = "wrong_values"
# evidence = "sparse"
# source = "a branch for zeros that no test takes (KernelBench-Verified)"
# caught_by = "sparse inputs: zeros"
# ///

"""Counts 0 among the positive numbers."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def signs(x_ptr, sign_ptr, zero_ptr, step_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < n
    x = tl.load(x_ptr + i, mask=ok)
    tl.store(sign_ptr + i, tl.where(x >= 0, 1.0, -1.0), mask=ok)
    tl.store(zero_ptr + i, x == 0, mask=ok)
    tl.store(step_ptr + i, tl.where(x > 0, 1.0, tl.where(x < 0, 0.0, 0.5)), mask=ok)


class ModelNew(nn.Module):
    def forward(self, x):
        sign, step = torch.empty_like(x), torch.empty_like(x)
        zero = torch.empty_like(x, dtype=torch.bool)
        signs[(triton.cdiv(x.numel(), 64),)](x, sign, zero, step, x.numel(), BLOCK=64)
        return sign, zero, step
