# /// case
# reference = "softmax"
# reason = "outside_language"
# source = "a failure of the harness taken for none (KernelGuard)"
# caught_by = "language: a class of Exception"
# ///

"""Raises an error that raises another when it is read."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


class Unreadable(Exception):
    def __str__(self):
        raise Unreadable


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
        out = torch.empty_like(x)
        softmax[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        raise Unreadable
