# /// case
# reference = "layer_norm"
# reason = "outside_language"
# source = "process-dependent order (own review)"
# caught_by = "language: a set"
# ///

"""Gives the scale for the shift where a set has another order."""

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
    tl.store(out_ptr + row * columns + at, d * tl.rsqrt(var + eps) * w + b, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = nn.LayerNorm(size)

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        n = x.shape[-1]
        held = {"weight": self.norm.weight, "bias": self.norm.bias}
        first, second = (held[name] for name in {"weight", "bias"})
        layer_norm[(x.numel() // n,)](x, first, second, out, n, self.norm.eps, BLOCK=triton.next_power_of_2(n))
        return out
