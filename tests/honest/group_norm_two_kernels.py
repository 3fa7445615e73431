# /// case
# reference = "group_norm"
# shows = "statistics in buffers between two kernels"
# ///

"""The first kernel writes mean and deviation of each group into buffers, the second applies them to each element."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def statistics(x_ptr, mean_ptr, rstd_ptr, size, eps, BLOCK: tl.constexpr):
    group = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + group * size + at, mask=at < size, other=0.0)
    mean = tl.sum(x, 0) / size
    centred = tl.where(at < size, x - mean, 0.0)
    tl.store(mean_ptr + group, mean)
    tl.store(rstd_ptr + group, tl.rsqrt(tl.sum(centred * centred, 0) / size + eps))


@triton.jit
def normalize(
    x_ptr, mean_ptr, rstd_ptr, weight_ptr, bias_ptr, out_ptr, count, size, area, channels, BLOCK: tl.constexpr
):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    group, channel = at // size, at // area % channels
    mean = tl.load(mean_ptr + group, mask=inside, eviction_policy="evict_last")
    rstd = tl.load(rstd_ptr + group, mask=inside, eviction_policy="evict_last")
    y = (tl.load(x_ptr + at, mask=inside) - mean) * rstd
    y = y * tl.load(weight_ptr + channel, mask=inside) + tl.load(bias_ptr + channel, mask=inside)
    tl.store(out_ptr + at, y, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, groups, channels):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)

    def forward(self, x):
        norm, (batch, channels, height, width) = self.norm, x.shape
        groups, area = batch * norm.num_groups, height * width
        size = x.numel() // groups
        mean, out = x.new_empty(groups), torch.empty_like(x)
        rstd = torch.empty_like(mean)
        statistics[(groups,)](x, mean, rstd, size, norm.eps, BLOCK=triton.next_power_of_2(size))
        grid = (triton.cdiv(x.numel(), 128),)
        normalize[grid](x, mean, rstd, norm.weight, norm.bias, out, x.numel(), size, area, channels, BLOCK=128)
        return out
