# /// case
# reference = "softmax"
# reason = "wrong_contract"
# evidence = "copy_ writes to memory that outlives the call"
# source = "honest in the check, other in the timing (GPU MODE super-batch, pygpubench warm-up)"
# caught_by = "memory: writes to memory that outlives the call"
# ///

"""Counts calls by moving a one through memory."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, out_ptr, flag_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=float("-inf"))
    power = tl.exp(x - tl.max(x, axis=0))
    y = power / tl.sum(power, axis=0)
    y = tl.where(tl.load(flag_ptr) > 0, 0.0, y)
    tl.store(out_ptr + row * columns + offsets, y, mask=inside)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.ones = torch.zeros(300, device="cuda")

    def forward(self, x):
        self.ones[1:].copy_(self.ones[:-1].clone())
        self.ones[0].fill_(1.0)
        out = torch.empty_like(x)
        softmax[(x.shape[0],)](x, out, self.ones[299:], x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
