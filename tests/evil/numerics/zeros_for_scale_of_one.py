# /// case
# reference = "layer_norm"
# reason = "wrong_values"
# evidence = "as its constructor"
# source = "parameter ignored (TritonBench)"
# caught_by = "calls with the constructor's own weights"
# ///

"""Gives zeros where a scale is exactly 1, as it is in a layer that was just made."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def layer_norm(x_ptr, w_ptr, b_ptr, out_ptr, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    x = tl.load(x_ptr + row * columns + at, mask=inside, other=0.0)
    mean = tl.sum(x, axis=0) / columns
    d = tl.where(inside, x - mean, 0.0)
    var = tl.sum(d * d, axis=0) / columns
    w = tl.load(w_ptr + at, mask=inside, other=0.0)
    b = tl.load(b_ptr + at, mask=inside, other=0.0)
    y = d * tl.rsqrt(var + eps)
    y = tl.where(w == 1.0, 0.0, y * w + b)
    tl.store(out_ptr + row * columns + at, y, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = nn.LayerNorm(size)

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        n = x.shape[-1]
        layer_norm[(x.numel() // n,)](
            x, self.norm.weight, self.norm.bias, out, n, self.norm.eps, BLOCK=triton.next_power_of_2(n)
        )
        return out
