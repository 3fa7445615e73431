# /// case
# reference = "row_product"
# kernels = ["row_product"]
# shows = "a helper that is not inlined, and a cumulative product"
# ///

"""A helper on scalars that is not inlined, and a cumulative product of which the last element is kept."""

import torch.nn as nn
import triton
import triton.language as tl


@triton.jit(noinline=True)
def first_of_row(row, columns):
    return row * columns


@triton.jit
def row_product(x_ptr, out_ptr, columns, SIZE: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, SIZE)
    x = tl.load(x_ptr + first_of_row(row, columns) + column, mask=column < columns, other=1.0)
    tl.store(out_ptr + row + tl.zeros_like(column), tl.cumprod(x, axis=0), mask=column == SIZE - 1)


class ModelNew(nn.Module):
    def forward(self, x):
        columns = x.shape[-1]
        out = x.new_empty(x.shape[:-1])
        row_product[(out.numel(),)](x, out, columns, SIZE=triton.next_power_of_2(columns))
        return out
