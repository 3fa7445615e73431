# /// case
# reference = "softmax"
# reason = "outside_language"
# source = "one program for the check and another for the use (KernelGuard)"
# kernels = ["softmax"]
# caught_by = "language: a statement If"
# ///

"""A right kernel for the interpreter, and another of the same name for the compiler."""

import torch
import torch.nn as nn
import triton
import triton.language as tl

if triton.knobs.runtime.interpret:

    @triton.jit
    def softmax(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
        row, offsets = tl.program_id(0), tl.arange(0, BLOCK)
        inside = offsets < columns
        x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=float("-inf"))
        power = tl.exp(x - tl.max(x, axis=0))
        tl.store(out_ptr + row * columns + offsets, power / tl.sum(power, axis=0), mask=inside)

else:

    @triton.jit
    def softmax(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
        row, offsets = tl.program_id(0), tl.arange(0, BLOCK)
        tl.store(out_ptr + row * columns + offsets, 0.0 * offsets, mask=offsets < columns)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        softmax[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
