# /// case
# reference = "moving_average"
# shows = "a buffer that one kernel updates and another reads"
# ///

"""A buffer of the module is updated in place by a first kernel and read by a second."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def update(x_ptr, mean_ptr, rows, columns, rate, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row, column = tl.arange(0, ROWS), tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = (row < rows)[:, None] & (column < columns)[None, :]
    x = tl.load(x_ptr + row[:, None] * columns + column[None, :], mask=inside, other=0.0)
    mean = tl.load(mean_ptr + column, mask=column < columns)
    mean += rate * (tl.sum(x, axis=0) / rows - mean)
    tl.store(mean_ptr + column, mean, mask=column < columns)


@triton.jit
def subtract(x_ptr, mean_ptr, out_ptr, count, columns, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mean = tl.load(mean_ptr + at % columns, mask=at < count)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < count) - mean, mask=at < count)


class ModelNew(nn.Module):
    def __init__(self, size, rate):
        super().__init__()
        self.rate = rate
        self.register_buffer("running_mean", torch.zeros(size))

    def forward(self, x):
        rows, columns = x.shape
        out = torch.empty_like(x)
        grid = (triton.cdiv(columns, 8),)
        update[grid](x, self.running_mean, rows, columns, self.rate, ROWS=triton.next_power_of_2(rows), BLOCK=8)
        subtract[(triton.cdiv(x.numel(), 64),)](x, self.running_mean, out, x.numel(), columns, BLOCK=64)
        return out
