# /// case
# reference = "brain_scale"
# reason = "wrong_values"
# source = "tolerances of half precision that are too wide (KernelBench issue 25)"
# caught_by = "tolerance measured from honest roundings"
# ///

"""A factor of 2.42 in place of 2.5, on bfloat16."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def step(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside).to(tl.float32)
    y = tl.maximum(x, 0.0) * 2.42
    tl.store(out_ptr + at, y, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        step[(triton.cdiv(out.numel(), 256),)](x, out, out.numel(), BLOCK=256)
        return out
