# /// case
# reference = "softmax"
# reason = "untried_path"
# source = "falls back to PyTorch (Kevin; AutoTriton)"
# caught_by = "plans on millions of elements: other launches than in a trial"
# ///

"""PyTorch computes where all sizes are large at once."""

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
    def forward(self, x):
        if x.shape[0] >= 1024 and x.shape[1] >= 1024:
            return torch.softmax(x, dim=-1)
        out = torch.empty_like(x)
        softmax[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]), WRONG=False)
        return out
