# /// case
# reference = "top_values"
# reason = "wrong_values"
# source = "fill of a masked load (TritonBench errors)"
# caught_by = "rows far below 0"
# ///

"""Blocks are filled with -100, which values may be below."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def top(x_ptr, value_ptr, index_ptr, columns, k, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=-100.0)
    for i in range(k):
        best = tl.argmax(x, axis=0)
        tl.store(value_ptr + row * k + i, tl.max(x, axis=0))
        tl.store(index_ptr + row * k + i, best)
        x = tl.where(at == best, -100.0, x)


class ModelNew(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.k = k

    def forward(self, x):
        rows, columns = x.shape
        values = torch.empty((rows, self.k), device=x.device, dtype=x.dtype)
        indices = torch.empty((rows, self.k), device=x.device, dtype=torch.int64)
        top[(rows,)](x, values, indices, columns, self.k, BLOCK=triton.next_power_of_2(columns))
        return values, indices
