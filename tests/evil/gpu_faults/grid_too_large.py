# /// case
# reference = "softmax"
# reason = "does_not_run"
# evidence = "grid"
# source = "a launch that no GPU accepts"
# caught_by = "interpreter: limits of a GPU's grid"
# ///

"""Has one program for each element, on an axis where a GPU takes 65,535 of them."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def double(x_ptr, count, PARTS: tl.constexpr):
    at = tl.program_id(1) * 16 + tl.arange(0, 16)
    x = tl.load(x_ptr + at, mask=at < count)
    tl.store(x_ptr + at, x, mask=at < count)


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
        double[(1, 1 << 16)](out, out.numel(), PARTS=1)
        return out
