# /// case
# reference = "row_maximum"
# shows = "tl.max with return_indices"
# ///

"""tl.max with return_indices; the index is stored as int64."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_maximum(x_ptr, value_ptr, index_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=float("-inf"))
    value, index = tl.max(x, axis=0, return_indices=True)
    tl.store(value_ptr + row, value)
    tl.store(index_ptr + row, index.to(tl.int64))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        value = torch.empty((rows,), dtype=x.dtype, device=x.device)
        index = torch.empty((rows,), dtype=torch.long, device=x.device)
        row_maximum[(rows,)](x, value, index, columns, BLOCK=triton.next_power_of_2(columns))
        return value, index
