# /// case
# reference = "instance_norm"
# shows = "mean and variance by Chan's formula in one loop"
# ///

"""Mean and variance are updated block by block in one loop, by Chan's formula on scalars."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def instance_norm(x_ptr, out_ptr, length, eps, BLOCK: tl.constexpr):
    start = tl.program_id(0) * length
    mean, square, seen = 0.0, 0.0, 0
    for first in range(0, length, BLOCK):
        at = first + tl.arange(0, BLOCK)
        inside = at < length
        x = tl.load(x_ptr + start + at, mask=inside, other=0.0)
        new = tl.minimum(BLOCK, length - first)
        block_mean = tl.sum(x, axis=0) / new
        centred = tl.where(inside, x - block_mean, 0.0)
        delta = block_mean - mean
        total = seen + new
        square += tl.sum(centred * centred, axis=0) + delta * delta * seen * new / total
        mean += delta * new / total
        seen = total
    scale = tl.rsqrt(square / length + eps)
    for first in range(0, length, BLOCK):
        at = first + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + start + at, mask=at < length)
        tl.store(out_ptr + start + at, (x - mean) * scale, mask=at < length)


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.InstanceNorm1d(channels)

    def forward(self, x):
        out = torch.empty_like(x)
        instance_norm[(x.shape[0] * x.shape[1],)](x, out, x.shape[2], self.norm.eps, BLOCK=16)
        return out
