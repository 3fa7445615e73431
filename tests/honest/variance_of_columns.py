# /// case
# reference = "column_moments"
# shows = "Welford's update row by row"
# ///

"""Each lane holds a column's mean and squared deviations, by Welford's update row by row."""

import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def column_moments(x_ptr, variance_ptr, mean_ptr, rows, columns, BLOCK: tl.constexpr):
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = column < columns
    mean = tl.zeros((BLOCK,), dtype=tl.float32)
    square = tl.zeros((BLOCK,), dtype=tl.float32)
    for row in range(rows):
        x = tl.load(x_ptr + row * columns + column, mask=inside, other=0.0)
        delta = x - mean
        mean += delta / (row + 1)
        square += delta * (x - mean)
    tl.store(variance_ptr + column, square / (rows - 1), mask=inside)
    tl.store(mean_ptr + column, mean, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        variance, mean = x.new_empty(columns), x.new_empty(columns)
        column_moments[(triton.cdiv(columns, 32),)](x, variance, mean, rows, columns, BLOCK=32)
        return variance, mean
