# /// case
# reference = "softmax"
# reason = "outside_language"
# source = "a name of Python with another value"
# caught_by = "language: a definition of dict"
# ///

"""Counts calls in a dictionary that the function seems to make: the file has its own `dict`."""

import torch
import torch.nn as nn
import triton
import triton.language as tl

KEPT = {"calls": 0}


def dict(calls):
    return KEPT


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
        kept = dict(calls=0)
        kept["calls"] = kept["calls"] + 1
        out = torch.empty_like(x)
        softmax[(x.shape[0],)](x, out, kept["calls"], x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
