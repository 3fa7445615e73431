# /// case
# reference = "mean_square"
# shows = "a buffer on the GPU by its index, and an output without dimensions"
# ///

"""Partial sums in a buffer made on the GPU by its index, then one program; the result has no dimensions."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def partial_sums(x_ptr, partial_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    at = pid * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(partial_ptr + pid, tl.sum(x * x))


@triton.jit
def finish(partial_ptr, out_ptr, count, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, count, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(partial_ptr + at, mask=at < count, other=0.0)
    tl.store(out_ptr, tl.sum(total) / n)


class ModelNew(nn.Module):
    def forward(self, x):
        n = x.numel()
        count = triton.cdiv(n, 128)
        partial = torch.empty(count, dtype=torch.float32, device=x.get_device())
        out = torch.empty((), dtype=x.dtype, device=x.device)
        partial_sums[(count,)](x, partial, n, BLOCK=128)
        finish[(1,)](partial, out, count, n, BLOCK=64)
        return out
