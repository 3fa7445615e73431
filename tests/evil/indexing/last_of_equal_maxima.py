# /// case
# reference = "row_argmax_as_int32"
# reason = "wrong_values"
# evidence = "share of wrong elements"
# source = "another choice among equal values"
# caught_by = "trials: equal values"
# ///

"""Gives the last of equal maxima, and the module casts the index."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_argmax(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row, offsets = tl.program_id(0), tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=float("-inf"))
    tl.store(out_ptr + row, tl.max(tl.where((x == tl.max(x)) & inside, offsets, -1)))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[0], dtype=torch.int32, device=x.device)
        row_argmax[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
