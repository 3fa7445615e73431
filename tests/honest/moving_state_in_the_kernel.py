# /// case
# reference = "moving_state"
# shows = "buffers that a kernel updates"
# ///

"""The kernel updates both buffers, then a second one reads them."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def update(x_ptr, mean_ptr, calls_ptr, rows, size, ROWS: tl.constexpr):
    c = tl.program_id(0)
    r = tl.arange(0, ROWS)
    mean = tl.sum(tl.load(x_ptr + r * size + c, mask=r < rows, other=0.0)) / rows
    tl.store(mean_ptr + c, 0.9 * tl.load(mean_ptr + c) + 0.1 * mean)
    if c == 0:
        tl.store(calls_ptr, tl.load(calls_ptr) + 1)


@triton.jit
def subtract(x_ptr, mean_ptr, out_ptr, n, size, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x - tl.load(mean_ptr + i % size, mask=i < n), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        rows, size = x.shape
        out = torch.empty_like(x)
        update[(size,)](x, self.mean, self.calls, rows, size, ROWS=triton.next_power_of_2(rows))
        subtract[(triton.cdiv(x.numel(), 64),)](x, self.mean, out, x.numel(), size, BLOCK=64)
        return out
