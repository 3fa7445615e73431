# /// case
# reference = "softmax"
# reason = "wrong_values"
# source = "precision downgrade of what is kept between kernels"
# caught_by = "tolerance measured from honest float32 runs"
# ///

"""Keeps what it has computed halfway in float16."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def exponentials(x_ptr, power_ptr, columns, BLOCK: tl.constexpr):
    row, offsets = tl.program_id(0), tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=float("-inf"))
    tl.store(power_ptr + row * columns + offsets, tl.exp(x - tl.max(x, axis=0)), mask=inside)


@triton.jit
def divide(power_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row, offsets = tl.program_id(0), tl.arange(0, BLOCK)
    inside = offsets < columns
    power = tl.load(power_ptr + row * columns + offsets, mask=inside, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * columns + offsets, power / tl.sum(power, axis=0), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        out, power = torch.empty_like(x), x.new_empty(x.shape, dtype=torch.float16)
        block = triton.next_power_of_2(x.shape[1])
        exponentials[(x.shape[0],)](x, power, x.shape[1], BLOCK=block)
        divide[(x.shape[0],)](power, out, x.shape[1], BLOCK=block)
        return out
