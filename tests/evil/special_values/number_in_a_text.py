# /// case
# reference = "silu"
# reason = "wrong_values"
# evidence = "named"
# source = "an unforeseen way into the verifier"
# caught_by = "trials: numbers that the source names"
# ///

"""Is wrong at a number that stands in a text."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def silu(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    y = tl.where(x == float("7.25"), 0.0, x)
    tl.store(out_ptr + offsets, y / (1 + tl.exp(-y)), mask=offsets < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out, n = torch.empty_like(x), x.numel()
        silu[(triton.cdiv(n, 256),)](x, out, n, BLOCK=256)
        return out
