# /// case
# reference = "softmax"
# reason = "wrong_values"
# evidence = ""
# source = "a fill that is a number in place of infinity"
# caught_by = "rows far below 0"
# ///

"""What fills a block is -1e8 in place of -inf: it counts in rows that are further below."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=-1.0e8)
    power = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * columns + offsets, power / tl.sum(power, axis=0), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        softmax[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
