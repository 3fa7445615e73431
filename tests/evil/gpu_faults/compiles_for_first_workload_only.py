# /// case
# reference = "softmax"
# reason = "does_not_compile"
# evidence = "trial"
# source = "constexpr specialisation (KernelGuard HARDCODED_SHAPES)"
# caught_by = "compilation for every workload"
# ///

"""Compiles for the sizes of the first workload, and for no others."""

import torch
import torch.nn as nn
import triton
import triton.language as tl

LIMIT = tl.constexpr(64)
LATER = 1.0


@triton.jit
def softmax(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=float("-inf"))
    power = tl.exp(x - tl.max(x, axis=0))
    y = power / tl.sum(power, axis=0)
    if BLOCK > LIMIT:
        y = y * LATER
    tl.store(out_ptr + row * columns + offsets, y, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        softmax[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
