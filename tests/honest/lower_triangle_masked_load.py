# /// case
# reference = "lower_triangle"
# shows = "masked loads that skip the upper triangle"
# ///

"""The mask of the load does the work: what is above the diagonal is never read."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def lower_triangle(x_ptr, out_ptr, rows, columns, DIAGONAL: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (column < columns)
    at = (tl.program_id(2) * rows + row) * columns + column
    x = tl.load(x_ptr + at, mask=inside & (column - row <= DIAGONAL), other=0.0)
    tl.store(out_ptr + at, x, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, diagonal):
        super().__init__()
        self.diagonal = diagonal

    def forward(self, x):
        batch, rows, columns = x.shape
        out = torch.empty_like(x)
        grid = (triton.cdiv(rows, 16), triton.cdiv(columns, 16), batch)
        lower_triangle[grid](x, out, rows, columns, self.diagonal, BLOCK=16)
        return out
