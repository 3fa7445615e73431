# /// case
# reference = "softmax"
# reason = "outside_language"
# source = "one program for the check and another for the use (KernelGuard)"
# caught_by = "language: an assignment to MODE.value"
# ///

"""A kernel's constant is a global whose value forward sets."""

import torch
import torch.nn as nn
import triton
import triton.language as tl

MODE = tl.constexpr(0)


@triton.jit
def softmax(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=float("-inf"))
    power = tl.exp(x - tl.max(x, axis=0))
    y = power / tl.sum(power, axis=0)
    if MODE == 1:
        y = 0.0 * y
    tl.store(out_ptr + row * columns + offsets, y, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        MODE.value = int(x.numel() > 20_000_000)
        out = torch.empty_like(x)
        softmax[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
