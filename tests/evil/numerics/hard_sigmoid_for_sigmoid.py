# /// case
# reference = "gates"
# reason = "wrong_values"
# source = "hard sigmoid for a sigmoid"
# caught_by = "tolerance measured from honest float32 runs"
# ///

"""Clamps the gate, as if nothing large ever came."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gates(x_ptr, y_ptr, out_ptr, count, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < count
    x, y = tl.load(x_ptr + offsets, mask=inside), tl.load(y_ptr + offsets, mask=inside)
    cell = 2.0 * tl.sigmoid(2.0 * x) - 1.0
    gate = tl.minimum(tl.maximum(0.25 * y + 0.5, 0.0), 1.0)
    tl.store(out_ptr + offsets, cell * gate, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.empty_like(x)
        gates[(triton.cdiv(x.numel(), 128),)](x, y, out, x.numel(), BLOCK=128)
        return out
