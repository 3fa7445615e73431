# /// case
# reference = "embedding_sum"
# reason = "wrong_values"
# evidence = "NaN"
# source = "an accumulator that is not cleared (gpuemu's acc=)"
# caught_by = "poison in fresh memory"
# ///

"""Adds to memory that it never cleared."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_rows(index_ptr, table_ptr, out_ptr, count, length, size, BLOCK: tl.constexpr):
    """One program for each index; rows of the table are added to the output, in any order."""
    position = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < size
    row = tl.load(index_ptr + position)
    values = tl.load(table_ptr + row * size + offsets, mask=inside, other=0.0)
    tl.atomic_add(out_ptr + position // length * size + offsets, values, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, rows, size):
        super().__init__()
        self.table = nn.Embedding(rows, size)

    def forward(self, index):
        batch, length = index.shape
        size = self.table.weight.shape[1]
        out = torch.empty((batch, size), device=index.device, dtype=self.table.weight.dtype)
        block = triton.next_power_of_2(size)
        add_rows[(index.numel(),)](index, self.table.weight, out, index.numel(), length, size, BLOCK=block)
        return out
