# /// case
# reference = "column_sums"
# kernels = ["column_sums"]
# deterministic = false
# shows = "a tensor descriptor that adds, with an end at a multiple of 16 bytes"
# ///

"""Sums of blocks of rows are added to the output by its descriptor, which leaves out what is beyond its end.

The end is that of sixteen bytes: a GPU adds its zeros to whatever else lies in the last of them.
"""

import torch.nn as nn
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def column_sums(x_ptr, out, rows, columns, BM: tl.constexpr, BN: tl.constexpr):
    start = tl.program_id(1) * BN
    row, column = tl.program_id(0) * BM + tl.arange(0, BM)[:, None], start + tl.arange(0, BN)[None, :]
    x = tl.load(x_ptr + row * columns + column, mask=(row < rows) & (column < columns), other=0.0)
    out.atomic_add([start], tl.sum(x, axis=0))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        out = x.new_zeros(triton.cdiv(columns, 4) * 4)
        described = TensorDescriptor(out, [len(out)], [1], [32])
        column_sums[(triton.cdiv(rows, 16), triton.cdiv(columns, 32))](x, described, rows, columns, BM=16, BN=32)
        return out[:columns]
