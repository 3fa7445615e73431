# /// case
# reference = "double_silu"
# shows = "float64 throughout"
# ///

"""float64 throughout: no constant may be rounded to float32."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def silu(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < count)
    tl.store(out_ptr + at, x / (1.0 + tl.exp(-x)), mask=at < count)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        silu[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
        return out
