# /// case
# reference = "unit_total"
# reason = "wrong_values"
# evidence = "small"
# source = "a guard that the module lacks"
# caught_by = "further calls: small numbers throughout"
# ///

"""Adds an eps to the sum of all squares."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def squares(x_ptr, total_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.atomic_add(total_ptr, tl.sum(x * x))


@triton.jit
def divide(x_ptr, total_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, x / tl.sqrt(tl.load(total_ptr) + 1e-9), mask=offsets < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out, n = torch.empty_like(x), x.numel()
        total = torch.zeros(1, device=x.device)
        squares[(triton.cdiv(n, 256),)](x, total, n, BLOCK=256)
        divide[(triton.cdiv(n, 256),)](x, total, out, n, BLOCK=256)
        return out
