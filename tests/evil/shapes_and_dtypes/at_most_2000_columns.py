# /// case
# reference = "row_sums"
# reason = "wrong_values"
# evidence = "for inputs"
# source = "a block with a largest size and no loop around it"
# caught_by = "calls with rows longer than the number that the source names"
# ///

"""Looks at two thousand columns, whatever the row has."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sums(x_ptr, sum_ptr, most_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total, most = 0.0, -float("inf")
    for start in range(0, min(columns, 2048), BLOCK):
        column = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + column, mask=column < columns, other=0.0)
        total += tl.sum(x, axis=0)
        most = tl.maximum(most, tl.max(tl.where(column < columns, x, -float("inf")), axis=0))
    tl.store(sum_ptr + row, total)
    tl.store(most_ptr + row, most)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        total, most = (torch.empty((rows,), device=x.device, dtype=x.dtype) for _ in range(2))
        sums[(rows,)](x, total, most, columns, BLOCK=256)
        return total, most
