# /// case
# reference = "gated_product"
# shows = "a fixed number of programs that stride over the blocks"
# ///

"""A fixed number of programs, each of which strides over the blocks."""

import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra import libdevice

PROGRAMS = 4


@triton.jit
def strided(x_ptr, y_ptr, out_ptr, count, BLOCK: tl.constexpr):
    step = tl.num_programs(0) * BLOCK
    for start in range(tl.program_id(0) * BLOCK, count, step):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < count, other=0.0)
        y = tl.load(y_ptr + at, mask=at < count, other=0.0)
        tl.store(out_ptr + at, libdevice.tanh(x) / (1.0 + tl.exp(-y)) + x * 0.5, mask=at < count)


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.empty_like(x)
        strided[(PROGRAMS,)](x, y, out, x.numel(), BLOCK=32)
        return out
