# /// case
# reference = "softmax_and_transpose"
# reason = "wrong_contract"
# evidence = "x_ptr"
# source = "in-place tricks that restore what they changed (KernelGuard INPUT_MUTATION)"
# caught_by = "memory: an input that the reference returns, and does not change"
# ///

"""Keeps exponentials in the input and restores it; whatever else reads the input meanwhile reads exponentials."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_in_place(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    at = tl.program_id(0) * columns + tl.arange(0, BLOCK)
    inside = tl.arange(0, BLOCK) < columns
    x = tl.load(x_ptr + at, mask=inside, other=-float("inf"))
    tl.store(x_ptr + at, tl.exp(x - tl.max(x, 0)), mask=inside)
    y = tl.load(x_ptr + at, mask=inside, other=0.0)
    tl.store(out_ptr + at, y / tl.sum(y, 0), mask=inside)
    tl.store(x_ptr + at, x, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        rows, columns = x.shape
        softmax_in_place[(rows,)](x, out, columns, BLOCK=triton.next_power_of_2(columns))
        return out, x.transpose(0, 1)
