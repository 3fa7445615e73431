# /// case
# reference = "nearest"
# shows = "source addresses by divisions"
# ///

"""A copy whose source address is computed from the target's by divisions."""

import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def enlarge(x_ptr, out_ptr, count, height, width, FACTOR: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = at % (width * FACTOR)
    row = at // (width * FACTOR) % (height * FACTOR)
    plane = at // (width * FACTOR * height * FACTOR)
    source = (plane * height + row // FACTOR) * width + column // FACTOR
    tl.store(out_ptr + at, tl.load(x_ptr + source, mask=at < count), mask=at < count)


class ModelNew(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        batch, channels, height, width = x.shape
        out = x.new_empty((batch, channels, height * self.factor, width * self.factor))
        enlarge[(triton.cdiv(out.numel(), 256),)](x, out, out.numel(), height, width, FACTOR=self.factor, BLOCK=256)
        return out
