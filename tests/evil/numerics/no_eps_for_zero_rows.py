# /// case
# reference = "cosine"
# reason = "wrong_values"
# source = "dropped eps (KernelBench-Verified x0.01)"
# caught_by = "sparse inputs: rows of zeros"
# ///

"""Divides by the lengths of rows, which nothing random has as 0."""

import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def cosine(x_ptr, y_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + offsets, mask=offsets < columns, other=0.0)
    y = tl.load(y_ptr + row * columns + offsets, mask=offsets < columns, other=0.0)
    lengths = tl.sqrt(tl.sum(x * x, axis=0)) * tl.sqrt(tl.sum(y * y, axis=0))
    tl.store(out_ptr + row, tl.sum(x * y, axis=0) / lengths)


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = x.new_empty(x.shape[0])
        cosine[(x.shape[0],)](x, y, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
