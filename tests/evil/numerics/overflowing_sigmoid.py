# /// case
# reference = "gates"
# reason = "wrong_values"
# source = "overflow on large values (gpuemu)"
# caught_by = "inputs with large magnitudes"
# ///

"""e^y / (1 + e^y), which is NaN for large y."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gates(x_ptr, y_ptr, out_ptr, count, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < count
    x, y = tl.load(x_ptr + offsets, mask=inside), tl.load(y_ptr + offsets, mask=inside)
    cell = 1.0 - 2.0 / (tl.exp(2.0 * x) + 1.0)
    gate = tl.exp(y) / (1.0 + tl.exp(y))
    tl.store(out_ptr + offsets, cell * gate, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.empty_like(x)
        gates[(triton.cdiv(x.numel(), 128),)](x, y, out, x.numel(), BLOCK=128)
        return out
