# /// case
# reference = "unit_rows"
# reason = "wrong_values"
# source = "an adversary's kernels for this verifier: values"
# caught_by = "rows of equal values, of which some are 1"
# ///

"""Another norm for rows in which each element equals its square, as it does in a tensor of ones."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def normalise(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    x = tl.load(x_ptr + row * columns + at, mask=inside, other=0.0)
    total = tl.sum(x * x, axis=0)
    ones = tl.sum(tl.where(inside & (x > 0) & (x == x * x), 1, 0), axis=0)
    total = tl.where((ones == columns) & (columns > 8), 4 * total, total)
    tl.store(out_ptr + row * columns + at, x * tl.rsqrt(total + 1e-6), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        normalise[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
