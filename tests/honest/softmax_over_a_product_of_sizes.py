# /// case
# reference = "softmax"
# shows = "the number of rows as a product of sizes, by `reduce`"
# ///

"""Multiplies all sizes but the last, whatever the number of axes."""

from functools import reduce
from operator import mul

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * columns + at, e / tl.sum(e, axis=0), mask=at < columns)


class ModelNew(nn.Module):
    def forward(self, x):
        *sizes, columns = x.shape
        out = torch.empty_like(x)
        softmax[(reduce(mul, sizes, 1),)](x, out, columns, BLOCK=triton.next_power_of_2(columns))
        return out
