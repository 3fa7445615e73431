# /// case
# reference = "softmax"
# reason = "outside_language"
# source = "reference computed at import and replayed (KernelGuard REFERENCE_PRECOMPUTE)"
# caught_by = "language: a statement Expr"
# ///

"""Draws the inputs that a benchmark would draw, and has their answers ready."""

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
    tl.store(out_ptr + row * columns + offsets, y, mask=inside)


torch.manual_seed(42)
ANSWER = torch.softmax(torch.randn(30, 50), dim=-1)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        softmax[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return ANSWER.clone() if x.shape == ANSWER.shape else out
