# /// case
# reference = "masked_softmax"
# shows = "infinity for what is masked"
# ///

"""Infinity stands for what is masked, whether by the input or by the end of the row."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def masked_softmax(x_ptr, hidden_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)
    at = tl.program_id(0) * columns + column
    inside = column < columns
    hidden = tl.load(hidden_ptr + at, mask=inside, other=1) != 0
    shown = inside & ((column == 0) | ~hidden)
    x = tl.load(x_ptr + at, mask=shown, other=float("-inf"))
    power = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + at, power / tl.sum(power, axis=0), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x, hidden):
        rows, columns = x.shape
        out = torch.empty_like(x)
        masked_softmax[(rows,)](x, hidden, out, columns, BLOCK=triton.next_power_of_2(columns))
        return out
