# /// case
# reference = "cumulative_sum"
# kernels = ["scan"]
# shows = "a scan from the right, by strides of -1"
# ///

"""A scan from the right of the reversed row, by strides of -1."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def scan(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = n - 1 - tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, mask=at >= 0, other=0.0)
    v = tl.associative_scan(v, 0, add, reverse=True)
    tl.store(y + row * n + at, v, mask=at >= 0)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        scan[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
