# /// case
# reference = "softmax"
# reason = "does_not_run"
# source = "a tensor on another device, which a check on a CPU does not see"
# evidence = "on the CPU"
# caught_by = "emulated GPU: a launch with a tensor on the CPU raises"
# ///

"""Keeps a table as a plain attribute, which stays on the CPU when the module is moved."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, one_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=float("-inf"))
    power = tl.exp(x - tl.max(x, axis=0))
    y = power / tl.sum(power, axis=0)
    y = y * tl.load(one_ptr)
    tl.store(out_ptr + row * columns + offsets, y, mask=inside)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = torch.ones(1)

    def forward(self, x):
        out = torch.empty_like(x)
        softmax[(x.shape[0],)](x, self.one, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
