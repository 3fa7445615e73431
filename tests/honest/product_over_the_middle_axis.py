# /// case
# reference = "middle_product"
# kernels = ["product"]
# shows = "a product in another order than PyTorch's"
# ///

"""Multiplied in halves, where PyTorch multiplies one after the other: each order leaves the range elsewhere."""

import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def multiply(a, b):
    return a * b


@triton.jit
def product(x_ptr, out_ptr, length, inner, BLOCK: tl.constexpr):
    at = tl.program_id(0)
    step = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + (at // inner * length + step) * inner + at % inner, mask=step < length, other=1.0)
    tl.store(out_ptr + at, tl.reduce(x, 0, multiply))


class ModelNew(nn.Module):
    def forward(self, x):
        outer, length, inner = x.shape
        out = x.new_empty((outer, inner))
        product[(outer * inner,)](x.contiguous(), out, length, inner, BLOCK=triton.next_power_of_2(length))
        return out
