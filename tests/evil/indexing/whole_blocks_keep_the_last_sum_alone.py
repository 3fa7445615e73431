# /// case
# reference = "cumulative_sum"
# reason = "wrong_values"
# evidence = "for inputs"
# source = "an adversary's kernels for this verifier: whole blocks"
# caught_by = "calls with three blocks of 16,384 columns"
# ///

"""Where a row has whole blocks alone, each starts from the sum of the one before, not of all."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def running_sums(x_ptr, out_ptr, columns, EVEN: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    carry = 0.0
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=0.0)
        tl.store(out_ptr + row * columns + at, tl.cumsum(x, 0) + carry, mask=at < columns)
        if EVEN:
            carry = tl.sum(x, 0)
        else:
            carry += tl.sum(x, 0)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        out = torch.empty_like(x)
        block = min(triton.next_power_of_2(columns), 16384)
        running_sums[(rows,)](x, out, columns, EVEN=columns % block == 0, BLOCK=block)
        return out
