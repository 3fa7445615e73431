# /// case
# reference = "layers"
# shows = "a launch for each layer, between two buffers"
# ///

"""One kernel is launched for each layer of a list, between two buffers that take turns."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def layer(x_ptr, weight_ptr, bias_ptr, out_ptr, rows, size, slope, BM: tl.constexpr, SIZE: tl.constexpr):
    row, column = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, SIZE)
    inside = (row < rows)[:, None] & (column < size)[None, :]
    x = tl.load(x_ptr + row[:, None] * size + column[None, :], mask=inside, other=0.0)
    square = (column < size)[:, None] & (column < size)[None, :]
    weight = tl.load(weight_ptr + column[None, :] * size + column[:, None], mask=square, other=0.0)
    y = tl.dot(x, weight, input_precision="ieee") + tl.load(bias_ptr + column, mask=column < size, other=0.0)
    y = x + tl.where(y > 0, y, slope * y)
    tl.store(out_ptr + row[:, None] * size + column[None, :], y, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, size, depth):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(size, size) for _ in range(depth))

    def forward(self, x):
        rows, size = x.shape
        buffers = [torch.empty_like(x), torch.empty_like(x)]
        block = max(16, triton.next_power_of_2(size))
        for number, linear in enumerate(self.layers):
            out = buffers[number % 2]
            layer[(triton.cdiv(rows, 16),)](x, linear.weight, linear.bias, out, rows, size, 0.1, BM=16, SIZE=block)
            x = out
        return x
