# /// case
# reference = "softmax"
# shows = "several rows in a program, in base 2"
# ///

"""Several rows in one program, normalised with the exponential in base two."""

import torch
import torch.nn as nn
import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def softmax_tile(x_ptr, out_ptr, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, COLUMNS)[None, :]
    inside = (row < rows) & (column < columns)
    x = tl.load(x_ptr + row * columns + column, mask=inside, other=float("-inf"))
    x = tl.where(row < rows, x, 0.0)  # no row is empty, or its maximum would be minus infinity
    power = tl.exp2((x - tl.max(x, axis=1)[:, None]) * LOG2_E)
    y = power / tl.sum(power, axis=1)[:, None]
    tl.store(out_ptr + row * columns + column, y, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        out = torch.empty_like(x)
        width = triton.next_power_of_2(columns)
        softmax_tile[(triton.cdiv(rows, 8),)](x, out, rows, columns, ROWS=8, COLUMNS=width, num_warps=2)
        return out
