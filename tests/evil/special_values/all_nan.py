# /// case
# reference = "softmax"
# reason = "wrong_values"
# evidence = "NaN"
# source = "NaN as a wildcard of the comparison: pygpubench gc_nan; SOL-ExecBench forbids it"
# caught_by = "NaN must stand where the oracle has it"
# ///

"""NaN compares with nothing, and so is never different."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=float("-inf"))
    power = tl.exp(x - tl.max(x, axis=0))
    y = power * float("nan")
    tl.store(out_ptr + row * columns + offsets, y, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        softmax[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
