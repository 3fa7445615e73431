# /// case
# reference = "gelu"
# reason = "wrong_values"
# source = "an approximation in place of the exact function (KernelBench-Verified)"
# caught_by = "tolerance measured from honest float32 runs"
# ///

"""The tanh approximation in place of the exact function."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gelu_of_sum(x_ptr, y_ptr, out_ptr, count, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < count
    z = tl.load(x_ptr + offsets, mask=inside) + tl.load(y_ptr + offsets, mask=inside)
    tl.store(out_ptr + offsets, z * tl.sigmoid(1.5957691216057308 * (z + 0.044715 * z * z * z)), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.empty_like(x)
        gelu_of_sum[(triton.cdiv(x.numel(), 64),)](x, y, out, x.numel(), BLOCK=64)
        return out
