# /// case
# reference = "gelu"
# reason = "not_deterministic"
# source = "reuse of what the allocator left (Sakana, KernelBench's result_reuse)"
# caught_by = "repetition with other unwritten contents"
# ///

"""Reads unwritten memory, where a NaN would not show."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gelu_of_sum(x_ptr, y_ptr, out_ptr, count, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < count
    z = tl.load(x_ptr + offsets, mask=inside) + tl.load(y_ptr + offsets, mask=inside)
    old = tl.load(out_ptr + offsets, mask=inside)
    z += tl.where(old == old, old * 1e-6, 0.0)
    tl.store(out_ptr + offsets, z * 0.5 * (1.0 + tl.erf(z * 0.7071067811865476)), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.empty_like(x)
        gelu_of_sum[(triton.cdiv(x.numel(), 64),)](x, y, out, x.numel(), BLOCK=64)
        return out
