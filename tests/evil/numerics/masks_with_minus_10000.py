# /// case
# reference = "masked_softmax"
# reason = "wrong_values"
# evidence = ""
# source = "a fill that is a number in place of infinity"
# caught_by = "inputs with large magnitudes"
# ///

"""Hidden elements are -10000 in place of -inf, and count where all others are far below."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def masked_softmax(x_ptr, hidden_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=float("-inf"))
    hidden = tl.load(hidden_ptr + row * columns + offsets, mask=inside, other=0)
    x = tl.where((hidden != 0) & inside & (offsets > 0), -1.0e4, x)
    power = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * columns + offsets, power / tl.sum(power, axis=0), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x, hidden):
        out = torch.empty_like(x)
        columns = x.shape[1]
        masked_softmax[(x.shape[0],)](x, hidden, out, columns, BLOCK=triton.next_power_of_2(columns))
        return out
