# /// case
# reference = "row_masked_softmax"
# reason = "wrong_values"
# evidence = "sparse"
# source = "masks of attention (generated code)"
# shape_general = false
# caught_by = "sparse inputs: rows that are masked throughout"
# ///

"""Hides by minus infinity where the reference hides by a large number: another row where all is hidden."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, hidden_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row, offsets = tl.program_id(0), tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=float("-inf"))
    hidden = tl.load(hidden_ptr + row * columns + offsets, mask=inside, other=1).to(tl.int1)
    x = tl.where(hidden, float("-inf"), x)
    power = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * columns + offsets, power / tl.sum(power, axis=0), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x, hidden):
        out = torch.empty_like(x)
        softmax[(x.shape[0],)](x, hidden, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
