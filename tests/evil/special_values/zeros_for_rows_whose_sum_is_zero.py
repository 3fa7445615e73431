# /// case
# reference = "unit_rows"
# reason = "wrong_values"
# evidence = "assorted"
# source = "an adversary's kernels for this verifier: special values"
# caught_by = "rows in which each number has its negative"
# ///

"""Takes a row for padding because its numbers cancel."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def unit_rows(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    place = tl.program_id(0) * columns + at
    x = tl.load(x_ptr + place, mask=at < columns, other=0.0)
    y = x * tl.rsqrt(tl.sum(x * x, axis=0) + 1e-6)
    tl.store(out_ptr + place, tl.where(tl.sum(x, axis=0) == 0, 0.0, y), mask=at < columns)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        unit_rows[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
