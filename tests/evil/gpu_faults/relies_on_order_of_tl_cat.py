# /// case
# reference = "softmax"
# reason = "wrong_values"
# source = "right in an interpreter alone (generated code)"
# caught_by = "interpreter: tl.cat in another order"
# ///

"""Relies on the order of what tl.cat puts together, which the compiler may change."""

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
    y = power / tl.sum(power, axis=0)
    low, high = tl.split(tl.trans(tl.reshape(y, (2, BLOCK // 2))))
    y = tl.cat(low, high, can_reorder=True)
    tl.store(out_ptr + row * columns + offsets, y, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        softmax[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
