# /// case
# reference = "row_sums"
# reason = "wrong_contract"
# evidence = "shape"
# source = "broadcast forgives a shape (KernelBench)"
# caught_by = "shapes of the outputs"
# ///

"""Keeps the dimension that was summed over."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_sum_and_max(x_ptr, sum_ptr, max_ptr, columns, BLOCK: tl.constexpr):
    row, offsets = tl.program_id(0), tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=0.0)
    tl.store(sum_ptr + row, tl.sum(x, axis=0))
    tl.store(max_ptr + row, tl.max(tl.where(inside, x, float("-inf")), axis=0))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        total = torch.empty((rows, 1), device=x.device, dtype=x.dtype)
        largest = torch.empty_like(total)
        row_sum_and_max[(rows,)](x, total, largest, columns, BLOCK=triton.next_power_of_2(columns))
        return total, largest
