# /// case
# reference = "batch_norm"
# shows = "statistics folded to a scale and a shift inside of the kernel"
# ///

"""Statistics are folded to a scale and a shift by the kernel, for a whole plane."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def bn_eval(x, w, b, mean, var, y, C, HW, eps, BLOCK: tl.constexpr):
    nc = tl.program_id(0)
    c = nc % C
    scale = tl.load(w + c) * tl.rsqrt(tl.load(var + c) + eps)
    shift = tl.load(b + c) - tl.load(mean + c) * scale
    offs = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < HW
    v = tl.load(x + nc * HW + offs, mask=mask)
    tl.store(y + nc * HW + offs, v * scale + shift, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        n, c, h, w = x.shape
        x = x.contiguous()
        y = torch.empty_like(x)
        bn = self.norm
        grid = (n * c, triton.cdiv(h * w, 64))
        bn_eval[grid](x, bn.weight, bn.bias, bn.running_mean, bn.running_var, y, c, h * w, bn.eps, BLOCK=64)
        return y
