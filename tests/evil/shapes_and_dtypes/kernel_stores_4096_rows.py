# /// case
# reference = "wide_scale"
# reason = "wrong_values"
# evidence = "[4097, 192]"
# source = "an adversary's kernels for this verifier: grids of a fixed length"
# caught_by = "calls beyond sizes that a kernel compares with, next to fixed sizes"
# ///

"""Stores no row from the 4,096th on."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, weight_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + at, mask=at < columns)
    weight = tl.load(weight_ptr + at, mask=at < columns)
    tl.store(out_ptr + row * columns + at, x * weight, mask=(at < columns) & (row < 4096))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(192))

    def forward(self, x):
        out = torch.empty_like(x)
        scale[(x.shape[0],)](x, self.weight, out, x.shape[1], BLOCK=256)
        return out
