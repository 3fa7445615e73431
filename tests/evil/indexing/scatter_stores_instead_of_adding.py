# /// case
# reference = "scatter"
# reason = ["wrong_values", "not_deterministic"]
# source = "duplicate indices (SOL-ExecBench training divergence)"
# caught_by = "indices that repeat"
# ///

"""Stores where it should add."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_rows(index_ptr, x_ptr, out_ptr, size, BLOCK: tl.constexpr):
    row, offsets = tl.program_id(0), tl.arange(0, BLOCK)
    inside = offsets < size
    values = tl.load(x_ptr + row * size + offsets, mask=inside)
    target = out_ptr + tl.load(index_ptr + row) * size + offsets
    tl.store(target, values, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.rows = rows

    def forward(self, index, x):
        size = x.shape[1]
        out = torch.zeros((self.rows, size), device=x.device, dtype=x.dtype)
        add_rows[(index.numel(),)](index, x, out, size, BLOCK=triton.next_power_of_2(size))
        return out
