# /// case
# reference = "softmax"
# reason = "does_not_run"
# evidence = "multiple of 16"
# source = "alignment assumed (generated code)"
# caught_by = "interpreter: hints are checked against addresses"
# ///

"""Promises the compiler an alignment that its rows do not have."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = tl.max_constancy(offsets < columns, 4)
    start = tl.multiple_of(row * columns, 16)
    x = tl.load(x_ptr + start + offsets, mask=inside, other=float("-inf"))
    power = tl.exp(x - tl.max(x, axis=0))
    y = power / tl.sum(power, axis=0)
    tl.store(out_ptr + start + offsets, y, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        softmax[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
