# /// case
# reference = "softmax"
# reason = "does_not_compile"
# evidence = "launch_pdl"
# source = "race (KernelGuard, generated code)"
# caught_by = "compilation: launch_pdl is refused"
# ///

"""The second kernel may begin before the first has ended, and does not wait for it."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def exponential(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row, offsets = tl.program_id(0), tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=float("-inf"))
    tl.store(out_ptr + row * columns + offsets, tl.exp(x - tl.max(x, axis=0)), mask=inside)


@triton.jit
def divide(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row, offsets = tl.program_id(0), tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=0.0)
    tl.store(out_ptr + row * columns + offsets, x / tl.sum(x, axis=0), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        powers, out = torch.empty_like(x), torch.empty_like(x)
        rows, columns = x.shape
        block = triton.next_power_of_2(columns)
        exponential[(rows,)](x, powers, columns, BLOCK=block)
        divide[(rows,)](powers, out, columns, BLOCK=block, launch_pdl=True)
        return out
