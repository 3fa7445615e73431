# /// case
# reference = "group_norm_silu"
# shows = "three passes over a group, and an output by empty_strided"
# ///

"""Three passes over a group in one program; the output has the input's strides by empty_strided."""

import math

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gn_silu(X, Y, W, B, C, HW, G, eps, HAS_AFFINE: tl.constexpr, BLOCK: tl.constexpr):
    n = tl.program_id(0)
    g = tl.program_id(1)
    cpg = C // G
    size = cpg * HW
    base = n * C * HW + g * size
    s = tl.zeros((BLOCK,), tl.float32)
    for o in range(0, size, BLOCK):
        i = o + tl.arange(0, BLOCK)
        s += tl.load(X + base + i, mask=i < size, other=0.0)
    mean = tl.sum(s) / size
    q = tl.zeros((BLOCK,), tl.float32)
    for o in range(0, size, BLOCK):
        i = o + tl.arange(0, BLOCK)
        d = tl.where(i < size, tl.load(X + base + i, mask=i < size, other=0.0) - mean, 0.0)
        q += d * d
    rstd = 1.0 / tl.sqrt(tl.sum(q) / size + eps)
    for o in range(0, size, BLOCK):
        i = o + tl.arange(0, BLOCK)
        m = i < size
        v = (tl.load(X + base + i, mask=m, other=0.0) - mean) * rstd
        if HAS_AFFINE:
            c = g * cpg + i // HW
            v = v * tl.load(W + c, mask=m, other=0.0) + tl.load(B + c, mask=m, other=0.0)
        tl.store(Y + base + i, v / (1.0 + tl.exp(-v)), mask=m)


class ModelNew(nn.Module):
    def __init__(self, groups, channels):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels, eps=1e-6)

    def forward(self, x):
        n, c, *spatial = x.shape
        x = x if x.is_contiguous() else x.contiguous()
        hw = math.prod(spatial)
        y = torch.empty_strided(x.size(), x.stride(), device=x.device, dtype=x.dtype)
        norm = self.norm
        gn_silu[n, norm.num_groups](
            x, y, norm.weight, norm.bias, c, hw, norm.num_groups, norm.eps, HAS_AFFINE=norm.affine, BLOCK=256
        )
        return y
