# /// case
# reference = "softmax"
# reason = "wrong_values"
# evidence = "assorted"
# source = "early exit that no test takes (KernelBench-Verified)"
# caught_by = "inputs of eight kinds of rows: equal values"
# ///

"""Skips rows whose values are all the same, but for zeros."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=float("-inf"))
    power = tl.exp(x - tl.max(x, axis=0))
    y = power / tl.sum(power, axis=0)
    low = tl.min(tl.where(inside, x, float("inf")), axis=0)
    high = tl.max(x, axis=0)
    y = tl.where((low == high) & (low != 0), 0.0, y)
    tl.store(out_ptr + row * columns + offsets, y, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        softmax[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
