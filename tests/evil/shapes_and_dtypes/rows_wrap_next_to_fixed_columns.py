# /// case
# reference = "wide_scale"
# reason = "wrong_values"
# evidence = "for inputs"
# source = "an adversary's kernels for this verifier: rows"
# caught_by = "calls with the more rows where the number of columns is fixed"
# ///

"""Rows beyond six blocks of 256 begin with the first again."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, weight_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0) % (6 * BLOCK)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    x = tl.load(x_ptr + row * columns + at, mask=inside)
    weight = tl.load(weight_ptr + at, mask=inside)
    tl.store(out_ptr + row * columns + at, x * weight, mask=inside)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(192))

    def forward(self, x):
        rows, columns = x.shape
        out = torch.zeros_like(x)
        scale[(rows,)](x, self.weight, out, columns, BLOCK=256)
        return out
