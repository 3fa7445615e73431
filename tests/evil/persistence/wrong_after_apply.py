# /// case
# reference = "softmax"
# reason = "outside_language"
# source = "honest in the check, other in the timing (GPU MODE super-batch, pygpubench warm-up)"
# caught_by = "language: a member apply of a class"
# ///

"""Is wrong once a function was applied to its layers, as to initialise them."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, out_ptr, columns, WRONG, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=float("-inf"))
    power = tl.exp(x - tl.max(x, axis=0))
    y = power / tl.sum(power, axis=0)
    tl.store(out_ptr + row * columns + offsets, y * (1.0 - WRONG), mask=inside)


class ModelNew(nn.Module):
    wrong = 0.0

    def apply(self, function):
        self.wrong = 1.0
        return super().apply(function)

    def forward(self, x):
        wrong = self.wrong
        out = torch.empty_like(x)
        softmax[(x.shape[0],)](x, out, x.shape[1], wrong, BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
