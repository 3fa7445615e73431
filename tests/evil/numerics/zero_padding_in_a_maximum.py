# /// case
# reference = "row_largest"
# reason = "wrong_values"
# evidence = "faint"
# source = "the wrong identity of a reduction, unseen where blocks are as long as rows"
# caught_by = "faint inputs: rows below 0"
# ///

"""Fills its block with zeros, which are the largest where all else is below."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def largest(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + column, mask=column < columns, other=0.0)
    tl.store(out_ptr + row, tl.max(x, axis=0))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        out = torch.empty((rows,), device=x.device, dtype=x.dtype)
        largest[(rows,)](x, out, columns, BLOCK=triton.next_power_of_2(columns))
        return out
