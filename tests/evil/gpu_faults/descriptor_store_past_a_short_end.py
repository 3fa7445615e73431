# /// case
# reference = "column_sums"
# reason = "does_not_run"
# evidence = "outside"
# source = "seen on an H200: what a descriptor writes ends at a multiple of sixteen bytes"
# caught_by = "interpreter: descriptor stores end at multiples of 16 bytes"
# ///

"""The output ends between sixteen bytes, and what a descriptor adds goes on to the end of these."""

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
        out = x.new_zeros(columns)
        described = TensorDescriptor(out, [columns], [1], [32])
        column_sums[(triton.cdiv(rows, 16), triton.cdiv(columns, 32))](x, described, rows, columns, BM=16, BN=32)
        return out
