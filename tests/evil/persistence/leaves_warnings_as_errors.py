# /// case
# reference = "softmax"
# reason = "outside_language"
# source = "a setting of the process left changed (GPU MODE, torch flags)"
# caught_by = "language: warnings.simplefilter"
# ///

"""Leaves warnings as errors for all."""

import warnings

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
    tl.store(out_ptr + row * columns + offsets, power / tl.sum(power, axis=0), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        warnings.simplefilter("error")
        softmax[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
