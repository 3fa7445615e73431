# /// case
# reference = "adaptive_pool"
# shows = "scalar programs that loop over windows of different sizes"
# ///

"""Scalar programs: each loops over its own window, whose bounds it computes, so that programs part."""

import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def adaptive_pool(x_ptr, out_ptr, height, width, SIZE: tl.constexpr, BLOCK: tl.constexpr):
    plane, row, column = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    top, bottom = row * height // SIZE, ((row + 1) * height + SIZE - 1) // SIZE
    left, right = column * width // SIZE, ((column + 1) * width + SIZE - 1) // SIZE
    total = 0.0
    y = top
    while y < bottom:
        for start in range(left, right, BLOCK):
            x = start + tl.arange(0, BLOCK)
            total += tl.sum(tl.load(x_ptr + (plane * height + y) * width + x, mask=x < right, other=0.0))
        y += 1
    mean = total / ((bottom - top) * (right - left))
    tl.store(out_ptr + (plane * SIZE + row) * SIZE + column, mean)


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(size)

    def forward(self, x):
        batch, channels, height, width = x.shape
        size = self.pool.output_size
        out = x.new_empty((batch, channels, size, size))
        adaptive_pool[(batch * channels, size, size)](x, out, height, width, SIZE=size, BLOCK=4)
        return out
