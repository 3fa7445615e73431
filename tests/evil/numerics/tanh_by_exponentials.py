# /// case
# reference = "gates"
# reason = "wrong_values"
# evidence = "NaN"
# source = "tanh by exponentials, NaN beyond 44 (translation validation, 3 rows)"
# caught_by = "scaled inputs"
# ///

"""(e^2x - 1) / (e^2x + 1), which is NaN for large x."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gates(x_ptr, y_ptr, out_ptr, count, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < count
    x, y = tl.load(x_ptr + offsets, mask=inside), tl.load(y_ptr + offsets, mask=inside)
    power = tl.exp(2.0 * x)
    cell, gate = (power - 1.0) / (power + 1.0), tl.sigmoid(y)
    tl.store(out_ptr + offsets, cell * gate, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.empty_like(x)
        gates[(triton.cdiv(x.numel(), 128),)](x, y, out, x.numel(), BLOCK=128)
        return out
