# /// case
# reference = "softmax"
# reason = "kernel_unused"
# source = "outputs below the absolute tolerance (KernelBench issue 165)"
# caught_by = "launches in the source"
# ///

"""Zeros are within an absolute tolerance of a softmax over many columns."""

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
    tl.store(out_ptr + row * columns + offsets, y, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.zeros_like(x)
