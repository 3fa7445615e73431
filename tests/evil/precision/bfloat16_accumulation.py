# /// case
# reference = "embedding_sum"
# reason = "wrong_values"
# source = "bfloat16 accumulation over real index distributions (SOL-ExecBench)"
# caught_by = "skewed indices: many additions to one row"
# ///

"""Adds rows in bfloat16, where frequent indices lose all further ones."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_rows(index_ptr, table_ptr, out_ptr, length, size, BLOCK: tl.constexpr):
    batch, offsets = tl.program_id(0), tl.arange(0, BLOCK)
    inside = offsets < size
    total = tl.zeros((BLOCK,), dtype=tl.bfloat16)
    for position in range(length):
        row = tl.load(index_ptr + batch * length + position)
        total = (total + tl.load(table_ptr + row * size + offsets, mask=inside, other=0.0)).to(tl.bfloat16)
    tl.store(out_ptr + batch * size + offsets, total.to(tl.float32), mask=inside)


class ModelNew(nn.Module):
    def __init__(self, rows, size):
        super().__init__()
        self.table = nn.Embedding(rows, size)

    def forward(self, index):
        (batch, length), size = index.shape, self.table.weight.shape[1]
        out = torch.empty((batch, size), device=index.device, dtype=self.table.weight.dtype)
        block = triton.next_power_of_2(size)
        add_rows[(batch,)](index, self.table.weight, out, length, size, BLOCK=block)
        return out
