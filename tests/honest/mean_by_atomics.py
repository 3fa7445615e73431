# /// case
# reference = "mean_square"
# deterministic = false  # the order of the additions
# shows = "atomics into one number"
# ///

"""Every program adds its share of the mean to one number."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_share(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < count, other=0.0)
    tl.atomic_add(out_ptr, tl.sum(x * x, axis=0) / count, sem="relaxed")


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.zeros((), device=x.device, dtype=x.dtype)
        add_share[(triton.cdiv(x.numel(), 16),)](x, out, x.numel(), BLOCK=16)
        return out
