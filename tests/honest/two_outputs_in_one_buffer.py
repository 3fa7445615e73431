# /// case
# reference = "row_sums"
# shows = "outputs that are rows of one buffer"
# ///

"""Both outputs are rows of one buffer."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def reduce_rows(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + offsets, mask=offsets < columns, other=float("-inf"))
    tl.store(out_ptr + row, tl.sum(tl.where(offsets < columns, x, 0.0), axis=0))
    tl.store(out_ptr + rows + row, tl.max(x, axis=0))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty((2, x.shape[0]), device=x.device)
        block = triton.next_power_of_2(x.shape[1])
        reduce_rows[(x.shape[0],)](x, out, x.shape[0], x.shape[1], BLOCK=block)
        total, most = out
        return total, most
