# /// case
# reference = "gelu"
# reason = "does_not_run"
# evidence = "outside"
# source = "stores into neighbours (CUDA-L2's guard bands)"
# caught_by = "bounds of every address"
# ///

"""Stores without a mask, over the end of its output."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gelu_of_sum(x_ptr, y_ptr, out_ptr, count, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < count
    z = tl.load(x_ptr + offsets, mask=inside) + tl.load(y_ptr + offsets, mask=inside)
    tl.store(out_ptr + offsets, z * 0.5 * (1.0 + tl.erf(z * 0.7071067811865476)))


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.empty_like(x)
        gelu_of_sum[(triton.cdiv(x.numel(), 64),)](x, y, out, x.numel(), BLOCK=64)
        return out
