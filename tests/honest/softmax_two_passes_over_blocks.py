# /// case
# reference = "softmax"
# shows = "two passes in blocks of a fixed size"
# ///

"""Two passes over the row in blocks of a fixed size: maximum and sum, then the result."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(out_ptr, in_ptr, in_stride, out_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row_idx = tl.program_id(axis=0)
    in_row = in_ptr + row_idx * in_stride
    out_row = out_ptr + row_idx * out_stride
    running_max = -float("inf")
    running_sum = 0.0
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE)
        values = tl.load(in_row + cols, mask=cols < n_cols, other=-float("inf"))
        new_max = tl.maximum(running_max, tl.max(values, axis=0))
        running_sum = running_sum * tl.exp(running_max - new_max) + tl.sum(tl.exp(values - new_max), axis=0)
        running_max = new_max
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE)
        values = tl.load(in_row + cols, mask=cols < n_cols, other=0.0)
        tl.store(out_row + cols, tl.exp(values - running_max) / running_sum, mask=cols < n_cols)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n_rows, n_cols = x.shape
        y = torch.empty_like(x)
        softmax_kernel[(n_rows,)](y, x, x.stride(0), y.stride(0), n_cols, BLOCK_SIZE=32, num_warps=4)
        return y
