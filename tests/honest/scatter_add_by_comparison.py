# /// case
# reference = "scatter_add"
# shows = "a scatter without atomics"
# ///

"""Each program owns a row of the output and adds what is meant for it: no atomics, the same bits each time."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def collect_rows(x_ptr, index_ptr, out_ptr, count, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    target = tl.program_id(0)
    column = tl.arange(0, COLUMNS)[None, :]
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for start in range(0, count, ROWS):
        row = start + tl.arange(0, ROWS)[:, None]
        mine = tl.load(index_ptr + row, mask=row < count, other=-1) == target
        total += tl.load(x_ptr + row * columns + column, mask=mine & (column < columns), other=0.0)
    tl.store(out_ptr + target * columns + column, tl.sum(total, 0, keep_dims=True), mask=column < columns)


class ModelNew(nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.rows = rows

    def forward(self, x, index):
        columns = x.shape[1]
        out = torch.empty((self.rows, columns), dtype=x.dtype, device=x.device)
        width = triton.next_power_of_2(columns)
        collect_rows[(self.rows,)](x, index, out, x.shape[0], columns, ROWS=16, COLUMNS=width)
        return out
