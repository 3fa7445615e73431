# /// case
# reference = "integer_sums"
# reason = "wrong_values"
# source = "dtype specialisation (KernelBench-M dtype)"
# caught_by = "integers at both ends of their range, compared exactly"
# ///

"""Adds integers as float32, which has 24 bits for them."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sum_and_largest(x_ptr, sum_ptr, at_ptr, columns, BLOCK: tl.constexpr):
    row, offsets = tl.program_id(0), tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=0)
    tl.store(sum_ptr + row, tl.sum(x.to(tl.float32), axis=0).to(tl.int64))
    tl.store(at_ptr + row, tl.argmax(tl.where(inside, x, -1), axis=0).to(tl.int64))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        total = torch.empty((rows,), device=x.device, dtype=torch.int64)
        at = torch.empty_like(total)
        sum_and_largest[(rows,)](x, total, at, columns, BLOCK=triton.next_power_of_2(columns))
        return total, at
