# /// case
# reference = "row_maximum"
# reason = "wrong_values"
# evidence = "sparse"
# source = "an index of another order among equals (torch.max promises the first)"
# caught_by = "sparse inputs: rows of equal values"
# ///

"""Of several largest elements, takes the last, which is another one in a row of zeros."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def largest(x_ptr, value_ptr, at_ptr, columns, BLOCK: tl.constexpr):
    row, offsets = tl.program_id(0), tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=-float("inf"))
    most = tl.max(x, axis=0)
    tl.store(value_ptr + row, most)
    tl.store(at_ptr + row, tl.max(tl.where(inside & (x == most), offsets, -1), axis=0).to(tl.int64))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        value = torch.empty((rows,), device=x.device, dtype=x.dtype)
        at = torch.empty((rows,), device=x.device, dtype=torch.int64)
        largest[(rows,)](x, value, at, columns, BLOCK=triton.next_power_of_2(columns))
        return value, at
