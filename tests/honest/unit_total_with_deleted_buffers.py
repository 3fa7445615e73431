# /// case
# reference = "unit_total"
# shows = "a buffer that is deleted, and a tuple of class variables"
# ///

"""Deletes its partial sums once they are added."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_squares(x_ptr, sums_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(sums_ptr + tl.program_id(0), tl.sum(x * x, axis=0))


@triton.jit
def add_sums(sums_ptr, norm_ptr, count, BLOCK: tl.constexpr):
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, count, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(sums_ptr + at, mask=at < count, other=0.0)
    tl.store(norm_ptr, tl.sqrt(tl.sum(total, axis=0)))


@triton.jit
def divide(x_ptr, norm_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) / tl.load(norm_ptr), mask=at < n)


class ModelNew(nn.Module):
    BLOCK, SUMS = 64, 128

    def forward(self, x):
        n, out = x.numel(), torch.empty_like(x)
        count = triton.cdiv(n, self.BLOCK)
        sums, norm = x.new_empty(count), x.new_empty(1)
        add_squares[(count,)](x, sums, n, BLOCK=self.BLOCK)
        add_sums[(1,)](sums, norm, count, BLOCK=self.SUMS)
        del sums
        divide[(count,)](x, norm, out, n, BLOCK=self.BLOCK)
        return out
