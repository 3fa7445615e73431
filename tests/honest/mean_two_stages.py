# /// case
# reference = "mean_square"
# shows = "partial sums that one program adds up"
# ///

"""Partial sums of blocks go into a buffer, which one program adds up."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def partial_sums(x_ptr, partial_ptr, count, BLOCK: tl.constexpr):
    block = tl.program_id(0)
    at = block * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < count, other=0.0)
    tl.store(partial_ptr + block, tl.sum(x * x))


@triton.jit
def finish(partial_ptr, out_ptr, blocks, count, BLOCKS: tl.constexpr):
    at = tl.arange(0, BLOCKS)
    tl.store(out_ptr, tl.sum(tl.load(partial_ptr + at, mask=at < blocks, other=0.0)) / count)


class ModelNew(nn.Module):
    def forward(self, x):
        blocks = triton.cdiv(x.numel(), 128)
        partial = torch.empty(blocks, device=x.device, dtype=torch.float32)
        out = torch.empty((), device=x.device, dtype=x.dtype)
        partial_sums[(blocks,)](x, partial, x.numel(), BLOCK=128)
        finish[(1,)](partial, out, blocks, x.numel(), BLOCKS=triton.next_power_of_2(blocks))
        return out
