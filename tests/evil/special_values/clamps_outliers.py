# /// case
# reference = "layer_norm"
# reason = "wrong_values"
# evidence = "assorted"
# source = "clamped where the reference is not (generated code)"
# caught_by = "rows with one value far above the others"
# ///

"""Cuts what is normalised at a number that only a row reaches in which one value stands out."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def normalise(x_ptr, weight_ptr, bias_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row, offsets = tl.program_id(0), tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=0.0)
    centred = tl.where(inside, x - tl.sum(x, axis=0) / columns, 0.0)
    y = centred * tl.rsqrt(tl.sum(centred * centred, axis=0) / columns + 1e-5)
    y = tl.minimum(tl.maximum(y, -6.5), 6.5)
    weight = tl.load(weight_ptr + offsets, mask=inside, other=0.0)
    bias = tl.load(bias_ptr + offsets, mask=inside, other=0.0)
    tl.store(out_ptr + row * columns + offsets, y * weight + bias, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = nn.LayerNorm(size)

    def forward(self, x):
        out, columns = torch.empty_like(x), x.shape[-1]
        rows, block = x.numel() // columns, triton.next_power_of_2(columns)
        normalise[(rows,)](x, self.norm.weight, self.norm.bias, out, columns, BLOCK=block)
        return out
