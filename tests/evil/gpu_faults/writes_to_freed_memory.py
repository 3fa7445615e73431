# /// case
# reference = "softmax"
# reason = "outside_language"
# source = "illegal address"
# caught_by = "language: the attribute data_ptr"
# ///

"""Keeps the address of a tensor that is gone, and writes there."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, out_ptr, address, columns, BLOCK: tl.constexpr):
    row, offsets = tl.program_id(0), tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=float("-inf"))
    power = tl.exp(x - tl.max(x, axis=0))
    y = power / tl.sum(power, axis=0)
    tl.store(address.to(tl.pointer_type(tl.float32)) + row * columns + offsets, y, mask=inside)
    tl.store(out_ptr + row * columns + offsets, y, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        address = torch.empty_like(x).data_ptr()
        softmax[(x.shape[0],)](x, out, address, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
