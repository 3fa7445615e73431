# /// case
# reference = "batch_norm_relu"
# shows = "PyTorch's layers in training, the kernel in evaluation"
# ///

"""PyTorch's own layers run in training, the kernel in evaluation."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def bn_relu(x, m, v, w, b, y, C, HW, eps, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    c = pid % C
    scale = tl.load(w + c) / tl.sqrt(tl.load(v + c) + eps)
    shift = tl.load(b + c) - tl.load(m + c) * scale
    for s in range(0, HW, BLOCK):
        i = s + tl.arange(0, BLOCK)
        t = tl.load(x + pid * HW + i, mask=i < HW, other=0.0) * scale + shift
        tl.store(y + pid * HW + i, tl.maximum(t, 0.0), mask=i < HW)


class ModelNew(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.bn = nn.BatchNorm2d(c)
        self.drop = nn.Dropout2d(0.1)

    def forward(self, x):
        if self.training:
            return torch.relu(self.drop(self.bn(x)))
        N, C, H, W = x.shape
        x = x.contiguous()
        y = torch.empty_like(x)
        bn = self.bn
        bn_relu[(N * C,)](x, bn.running_mean, bn.running_var, bn.weight, bn.bias, y, C, H * W, bn.eps, BLOCK=128)
        return y
