# /// case
# reference = "softmax"
# reason = "outside_language"
# source = "try/except around the launch (Kevin, KernelBench's static checker)"
# caught_by = "language: try"
# ///

"""Tries a kernel that is only interpreted, and launches it in another form where that fails."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, out_ptr, columns, BLOCK: tl.constexpr, WRONG: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=float("-inf"))
    power = tl.exp(x - tl.max(x, axis=0))
    y = power / tl.sum(power, axis=0)
    if WRONG:
        y = 0.0 * y
    else:
        for _ in (0,):  # a loop that the compiler does not take
            y = y * 1.0
    tl.store(out_ptr + row * columns + offsets, y, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        try:
            softmax[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]), WRONG=False)
        except Exception:  # noqa: BLE001
            softmax[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]), WRONG=True)
        return out
