# /// case
# reference = "softmax"
# reason = "outside_language"
# source = "a list that a function changes by another name"
# caught_by = "language: a change of rows"
# ///

"""Counts calls by the length of a list, which grows by a tuple."""

import torch
import torch.nn as nn
import triton
import triton.language as tl

ROWS = []


@triton.jit
def softmax(x_ptr, out_ptr, calls, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=float("-inf"))
    power = tl.exp(x - tl.max(x, axis=0))
    y = power / tl.sum(power, axis=0)
    y = tl.where(calls > 100000, 0.0, y)
    tl.store(out_ptr + row * columns + offsets, y, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        rows = ROWS
        rows += (1,)
        out = torch.empty_like(x)
        softmax[(x.shape[0],)](x, out, len(rows), x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
