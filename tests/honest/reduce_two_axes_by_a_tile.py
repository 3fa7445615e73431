# /// case
# reference = "reduce_two_axes"
# shows = "two axes reduced in one tile"
# ///

"""All of a channel's column in one tile of rows and lines."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def moments(x_ptr, mean_ptr, var_ptr, N, C, H, W, BLOCK_N: tl.constexpr, BLOCK_H: tl.constexpr):
    c = tl.program_id(0) // W
    w = tl.program_id(0) % W
    n = tl.arange(0, BLOCK_N)[:, None]
    h = tl.arange(0, BLOCK_H)[None, :]
    inside = (n < N) & (h < H)
    x = tl.load(x_ptr + ((n * C + c) * H + h) * W + w, mask=inside, other=0.0)
    mean = tl.sum(tl.sum(x, axis=1), axis=0) / (N * H)
    d = tl.where(inside, x - mean, 0.0)
    tl.store(mean_ptr + c * W + w, mean)
    tl.store(var_ptr + c * W + w, tl.sum(d * d) / (N * H))


class ModelNew(nn.Module):
    def forward(self, x):
        N, C, H, W = x.shape
        mean = torch.empty((1, C, 1, W), device=x.device)
        var = torch.empty((C, W), device=x.device)
        moments[(C * W,)](
            x, mean, var, N, C, H, W, BLOCK_N=triton.next_power_of_2(N), BLOCK_H=triton.next_power_of_2(H)
        )
        return mean, var
