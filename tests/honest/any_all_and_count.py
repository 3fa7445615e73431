# /// case
# reference = "any_and_all"
# shows = "boolean reductions by integer maximum and minimum"
# ///

"""Boolean reductions by maximum and minimum of integers, and a count."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def any_and_all(x_ptr, any_ptr, all_ptr, count_ptr, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, COLUMNS)
    inside = (row[:, None] < rows) & (column[None, :] < columns)
    x = tl.load(x_ptr + row[:, None] * columns + column[None, :], mask=inside)
    some = tl.max((inside & (x > 1)).to(tl.int32), axis=1)
    every = tl.min((~inside | (x > -1)).to(tl.int32), axis=1)
    tl.store(any_ptr + row, some.to(tl.int1), mask=row < rows)
    tl.store(all_ptr + row, every == 1, mask=row < rows)
    tl.store(count_ptr + row, tl.sum(tl.where(inside & (x > 0), 1, 0), axis=1), mask=row < rows)


class ModelNew(nn.Module):
    def forward(self, x):
        shape, columns = x.shape[:-1], x.shape[-1]
        some = torch.empty(shape, dtype=torch.bool, device=x.device)
        every = torch.empty_like(some)
        count = torch.empty(shape, dtype=torch.int64, device=x.device)
        grid = (triton.cdiv(count.numel(), 16),)
        width = triton.next_power_of_2(columns)
        any_and_all[grid](x, some, every, count, count.numel(), columns, ROWS=16, COLUMNS=width)
        return some, every, count
