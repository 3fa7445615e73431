# /// case
# reference = "row_product"
# kernels = ["row_product"]
# shows = "tl.reduce with its own combination"
# ///

"""tl.reduce with a combination of one's own, over tiles of short rows."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def multiply(a, b):
    return a * b


@triton.jit
def row_product(x_ptr, out_ptr, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, COLUMNS)
    inside = (row < rows)[:, None] & (column < columns)[None, :]
    x = tl.load(x_ptr + row[:, None] * columns + column[None, :], mask=inside, other=1.0)
    tl.store(out_ptr + row, tl.reduce(x, axis=1, combine_fn=multiply), mask=row < rows)


class ModelNew(nn.Module):
    def forward(self, x):
        columns = x.shape[-1]
        out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
        grid = (triton.cdiv(out.numel(), 16),)
        row_product[grid](x, out, out.numel(), columns, ROWS=16, COLUMNS=triton.next_power_of_2(columns))
        return out
