# /// case
# reference = "softmax"
# reason = "wrong_values"
# source = "wrong axis, hidden by equal dimensions (KernelBench-Verified)"
# caught_by = "sizes differ"
# ///

"""Softmax over the other axis."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr):
    column = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < rows
    x = tl.load(x_ptr + offsets * columns + column, mask=inside, other=float("-inf"))
    power = tl.exp(x - tl.max(x, axis=0))
    y = power / tl.sum(power, axis=0)
    tl.store(out_ptr + offsets * columns + column, y, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        rows, columns = x.shape
        softmax[(columns,)](x, out, rows, columns, BLOCK=triton.next_power_of_2(rows))
        return out
