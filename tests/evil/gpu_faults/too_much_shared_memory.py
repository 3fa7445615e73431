# /// case
# reference = "softmax"
# reason = ["does_not_compile", "kernel_unused"]
# source = "shared memory over the limit (wafer)"
# caught_by = "compilation"
# ///

"""Asks for blocks that no multiprocessor has room for."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def square(x_ptr, out_ptr, K, BLOCK: tl.constexpr, STEP: tl.constexpr):
    at, total = tl.arange(0, BLOCK), tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, K, STEP):
        inner = start + tl.arange(0, STEP)
        left = tl.load(x_ptr + at[:, None] * K + inner[None, :])
        right = tl.load(x_ptr + inner[:, None] * BLOCK + at[None, :])
        total = tl.dot(left, right, total)
    tl.store(out_ptr + at[:, None] * BLOCK + at[None, :], total)


@triton.jit
def softmax(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=float("-inf"))
    power = tl.exp(x - tl.max(x, axis=0))
    y = power / tl.sum(power, axis=0)
    tl.store(out_ptr + row * columns + offsets, y, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        softmax[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        halves = torch.zeros((128, 128), dtype=torch.float16, device=x.device)
        scratch = torch.empty((128, 128), dtype=torch.float32, device=x.device)
        square[(1,)](halves, scratch, 128, BLOCK=128, STEP=64, num_stages=8, num_warps=8)
        return out
