# /// case
# reference = "integer_sums"
# reason = "wrong_values"
# evidence = "output 1"
# source = "the other extreme (KernelBench-M reduction)"
# caught_by = "comparison of every output"
# ///

"""Of several largest elements, takes the last."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sum_and_largest(x_ptr, sum_ptr, at_ptr, columns, BLOCK: tl.constexpr):
    row, offsets = tl.program_id(0), tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=0)
    tl.store(sum_ptr + row, tl.sum(x, axis=0))
    tl.store(at_ptr + row, tl.argmin(tl.where(inside, x, 1 << 50), axis=0).to(tl.int64))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        total = torch.empty((rows,), device=x.device, dtype=torch.int64)
        at = torch.empty_like(total)
        sum_and_largest[(rows,)](x, total, at, columns, BLOCK=triton.next_power_of_2(columns))
        return total, at
