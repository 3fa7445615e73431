# /// case
# reference = "sorted_rows"
# shows = "a descending sort of two rows in a program"
# ///

"""The negated row is sorted in descending order, two rows in one program."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sort_rows(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0) * 2 + tl.arange(0, 2)[:, None]
    at = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (at < columns)
    x = tl.load(x_ptr + row * columns + at, mask=inside, other=float("inf"))
    tl.store(out_ptr + row * columns + at, -tl.sort(-x, descending=True), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        out = torch.empty_like(x)
        sort_rows[(triton.cdiv(rows, 2),)](x, out, rows, columns, BLOCK=triton.next_power_of_2(columns))
        return out
