# /// case
# reference = "gelu"
# shows = "tuples of pointers, and named tuples of strides"
# ///

"""Pointers in a tuple, strides and sizes in named ones."""

from typing import NamedTuple

import torch
import torch.nn as nn
import triton
import triton.language as tl


class Layout(NamedTuple):
    row: int
    column: int


@triton.jit
def gelu_of_sum(pointers, out_ptr, size, stride, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    inside = column < size.column
    at = row * stride.row + column * stride.column
    x = tl.load(pointers[0] + at, mask=inside) + tl.load(pointers[1] + at, mask=inside)
    tl.store(out_ptr + at, 0.5 * x * (1 + tl.erf(x * 0.7071067811865476)), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x, y):
        x, y = x.contiguous(), y.contiguous()
        out = torch.empty_like(x)
        size = Layout(x.numel() // x.shape[-1], x.shape[-1])
        stride = Layout(row=x.shape[-1], column=x.stride(-1))
        gelu_of_sum[(size.row,)]((x, y), out, size, stride, BLOCK=triton.next_power_of_2(size.column))
        return out
