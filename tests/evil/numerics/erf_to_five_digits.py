# /// case
# reference = "gelu"
# reason = "wrong_values"
# source = "approximation of a transcendental function"
# caught_by = "tolerance measured from honest float32 runs"
# ///

"""An error function to five digits."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gelu_of_sum(x_ptr, y_ptr, out_ptr, count, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < count
    z = tl.load(x_ptr + offsets, mask=inside) + tl.load(y_ptr + offsets, mask=inside)
    u = tl.abs(z) * 0.7071067811865476
    t = 1.0 / (1.0 + 0.47047 * u)
    erf = 1.0 - t * (0.3480242 + t * (-0.0958798 + t * 0.7478556)) * tl.exp(-u * u)
    tl.store(out_ptr + offsets, z * 0.5 * (1.0 + tl.where(z < 0.0, -erf, erf)), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.empty_like(x)
        gelu_of_sum[(triton.cdiv(x.numel(), 64),)](x, y, out, x.numel(), BLOCK=64)
        return out
