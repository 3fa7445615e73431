# /// case
# reference = "softmax"
# reason = "outside_language"
# source = "state from an earlier call (own review)"
# caught_by = "language: an assignment to self.first"
# ///

"""Is wrong for good if its first call was large."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, out_ptr, columns, BLOCK: tl.constexpr, WRONG: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=float("-inf"))
    power = tl.exp(x - tl.max(x, axis=0))
    y = power / tl.sum(power, axis=0)
    if WRONG:
        y = 0.0 * y
    tl.store(out_ptr + row * columns + offsets, y, mask=inside)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = 0

    def forward(self, x):
        out = torch.empty_like(x)
        self.first = self.first or x.numel()
        softmax[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]), WRONG=self.first > 1 << 20)
        return out
