# /// case
# reference = "softmax"
# reason = "wrong_values"
# source = "behaves otherwise where it is interpreted (KernelBench-Verified, interpreter and GPU differ)"
# caught_by = "interpreter: integers of a loop behave as on a GPU"
# ///

"""Multiplies what a loop counts until an integer of a GPU has no room for it."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=float("-inf"))
    power = tl.exp(x - tl.max(x, axis=0))
    y = power / tl.sum(power, axis=0)
    for step in range(2, 3):
        y = tl.where(step * 65536 * 65536 > 0, y, 0.0)
    tl.store(out_ptr + row * columns + offsets, y, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        softmax[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
