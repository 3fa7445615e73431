# /// case
# reference = "row_largest"
# reason = "wrong_values"
# source = "missing tail (TritonBench)"
# caught_by = "refused sizes are rounded up to multiples of 64"
# ///

"""Refuses sizes that 32 does not divide, and leaves out what is beyond 512 columns."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def largest(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=-float("inf"))
    tl.store(out_ptr + row, tl.max(x, axis=0))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        if columns % 32:
            raise ValueError("columns must be a multiple of 32")
        out = torch.empty((rows,), device=x.device, dtype=x.dtype)
        largest[(rows,)](x, out, columns, BLOCK=512)
        return out
