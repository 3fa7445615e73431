# /// case
# reference = "matrix_vector"
# shows = "a product without tl.dot"
# ///

"""A tile of rows is multiplied and summed along its columns, without tl.dot."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def matrix_vector(x_ptr, vector_ptr, out_ptr, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    total = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)[None, :]
        inside = (row < rows) & (column < columns)
        vector = tl.load(vector_ptr + column, mask=column < columns, other=0.0)
        total += tl.load(x_ptr + row * columns + column, mask=inside, other=0.0) * vector
    tl.store(out_ptr + row, tl.sum(total, axis=1, keep_dims=True), mask=row < rows)


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.vector = nn.Parameter(torch.randn(size))

    def forward(self, x):
        rows, columns = x.shape
        out = x.new_empty((rows,))
        matrix_vector[(triton.cdiv(rows, 4),)](x, self.vector, out, rows, columns, ROWS=4, BLOCK=32)
        return out
