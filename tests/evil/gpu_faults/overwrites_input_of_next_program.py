# /// case
# reference = "softmax"
# reason = "not_deterministic"
# source = "memory that other programs still read is written to"
# caught_by = "repetition with programs in reverse order"
# ///

"""Each program writes where the next one reads: right if they start in order, or all at once."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(rows_ptr, columns, BLOCK: tl.constexpr):
    row, offsets = tl.program_id(0), tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(rows_ptr + (row + 1) * columns + offsets, mask=inside, other=float("-inf"))
    power = tl.exp(x - tl.max(x, axis=0))
    tl.store(rows_ptr + row * columns + offsets, power / tl.sum(power, axis=0), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        rows = torch.empty((x.shape[0] + 1, x.shape[1]), dtype=x.dtype, device=x.device)
        rows[1:] = x
        softmax[(x.shape[0],)](rows, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return rows[:-1].clone()
