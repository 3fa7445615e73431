# /// case
# reference = "softmax"
# reason = "wrong_values"
# source = "constant outputs (KernelBench-Verified L2/23, L2/80, L2/83)"
# caught_by = "comparison with the oracle, each element"
# ///

"""The same number for every element: the mean of a softmax is known."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def fill(out_ptr, count, columns, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.full((BLOCK,), 1.0, tl.float32) / columns, mask=offsets < count)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        fill[(triton.cdiv(x.numel(), 128),)](out, x.numel(), x.shape[1], BLOCK=128)
        return out
