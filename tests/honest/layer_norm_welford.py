# /// case
# reference = "layer_norm"
# kernels = ["layer_norm"]
# shows = "Welford's combination of triples in tl.reduce"
# ///

"""One pass: mean and variance by Welford's combination of three values in tl.reduce."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def combine(mean_a, square_a, count_a, mean_b, square_b, count_b):
    count = count_a + count_b
    share = tl.where(count == 0.0, 0.0, count_b / count)
    delta = mean_b - mean_a
    return mean_a + delta * share, square_a + square_b + delta * delta * count_a * share, count


@triton.jit
def layer_norm(x_ptr, weight_ptr, bias_ptr, out_ptr, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    x = tl.load(x_ptr + row * columns + at, mask=inside, other=0.0)
    mean, square, count = tl.reduce((x, tl.zeros_like(x), inside.to(tl.float32)), 0, combine)
    y = (x - mean) * tl.math.rsqrt(square / count + eps)
    y = y * tl.load(weight_ptr + at, mask=inside) + tl.load(bias_ptr + at, mask=inside)
    tl.store(out_ptr + row * columns + at, y, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = nn.LayerNorm(size)

    def forward(self, x):
        norm, columns = self.norm, x.shape[-1]
        out = torch.empty_like(x)
        block = triton.next_power_of_2(columns)
        layer_norm[(x.numel() // columns,)](x, norm.weight, norm.bias, out, columns, norm.eps, BLOCK=block)
        return out
