# /// case
# reference = "layer_norm_without_bias"
# kernels = ["ln"]
# shows = "None for a pointer, and defaults of constants"
# ///

"""None stands for a pointer that is not there; defaults of constants, helpers called by keyword."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def normalise(x, mask, n, eps=1e-5):
    mean = tl.sum(x, axis=0) / n
    d = tl.where(mask, x - mean, 0.0)
    return d * (1.0 / tl.sqrt(tl.sum(d * d, axis=0) / n + eps))


@triton.jit
def ln(X, W, B, Y, N, eps, BLOCK: tl.constexpr = 32, HAS_RESIDUAL: tl.constexpr = False):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(X + row * N + cols, mask, 0.0)
    y = normalise(x, mask=mask, n=N, eps=eps)
    if W is not None:
        y *= tl.load(W + cols, mask, 0.0)
    if B is not None:
        y += tl.load(B + cols, mask, 0.0)
    tl.store(Y + row * N + cols, y, mask)


class ModelNew(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm = nn.LayerNorm(d, bias=False)

    def forward(self, x):
        y = torch.empty_like(x)
        rows, n = x.shape
        ln[(rows,)](x, self.norm.weight, self.norm.bias, y, n, eps=self.norm.eps)
        return y
