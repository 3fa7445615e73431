# /// case
# reference = "silu"
# shows = "a launcher with some arguments"
# ///

"""A constant of the file holds a launcher and its block."""

import functools

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def silu(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, x / (1.0 + tl.exp(-x)), mask=at < n)


def run(x, *, block, num_warps):
    out = torch.empty_like(x)
    silu[(triton.cdiv(x.numel(), block),)](x, out, x.numel(), BLOCK=block, num_warps=num_warps)
    return out


run_in_blocks = functools.partial(run, block=64, num_warps=4)


class ModelNew(nn.Module):
    def forward(self, x):
        return run_in_blocks(x)
