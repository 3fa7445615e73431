# /// case
# reference = "softmax"
# reason = "outside_language"
# source = "non-default stream (KernelBench, CUDA-L1 32.8 %)"
# caught_by = "language: an import from contextlib"
# ///

"""Launches on a stream of its own, and returns before it is done."""

import contextlib

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


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        with torch.cuda.stream(torch.cuda.Stream()) if x.is_cuda else contextlib.nullcontext():
            softmax[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
