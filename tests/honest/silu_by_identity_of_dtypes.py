# /// case
# reference = "silu"
# shows = "dtypes that `is` compares"
# ///

"""Tells by identity whether a dtype needs a conversion."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def silu(x_ptr, out_ptr, n, CONVERTS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    if CONVERTS:
        x = x.to(tl.float32)
    tl.store(out_ptr + at, x * tl.sigmoid(x), mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        converts = x.dtype is torch.float16 or x.dtype is torch.bfloat16
        assert x.dtype is not torch.int8, "whole numbers have no sigmoid"
        out = torch.empty_like(x)
        silu[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), CONVERTS=converts, BLOCK=64)
        return out
