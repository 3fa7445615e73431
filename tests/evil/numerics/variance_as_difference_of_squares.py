# /// case
# reference = "layer_norm"
# reason = "wrong_values"
# evidence = "shifted"
# source = "E[x^2] - E[x]^2 (KernelBench-Verified, translation validation)"
# caught_by = "shifted inputs"
# ///

"""E[x^2] - E[x]^2: as good as the other formula while the mean is 0."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def layer_norm(x_ptr, weight_ptr, bias_ptr, out_ptr, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=0.0)
    mean = tl.sum(x, axis=0) / columns
    centred = tl.where(inside, x - mean, 0.0)
    variance = tl.sum(x * x, axis=0) / columns - mean * mean
    weight = tl.load(weight_ptr + offsets, mask=inside)
    bias = tl.load(bias_ptr + offsets, mask=inside)
    y = centred * tl.rsqrt(variance + eps) * weight + bias
    tl.store(out_ptr + row * columns + offsets, y, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = nn.LayerNorm(size)

    def forward(self, x):
        out = torch.empty_like(x)
        columns = x.shape[-1]
        layer_norm[(x.numel() // columns,)](
            x, self.norm.weight, self.norm.bias, out, columns, 1e-5, BLOCK=triton.next_power_of_2(columns)
        )
        return out
