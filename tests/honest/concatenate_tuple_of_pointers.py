# /// case
# reference = "concatenate"
# shows = "tuples of pointers and a loop at compile time"
# ///

"""The inputs and their widths come to the kernel as tuples, over which it loops at compile time."""

import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def concatenate(pointers, widths, factors, out_ptr, total, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    start = 0
    for i in tl.static_range(len(pointers)):
        inside = (column >= start) & (column < start + widths[i])
        x = tl.load(pointers[i] + row * widths[i] + column - start, mask=inside)
        tl.store(out_ptr + row * total + column, x * factors[i], mask=inside)
        start += widths[i]


class ModelNew(nn.Module):
    def forward(self, x, y):
        widths = (x.shape[1], y.shape[1])
        out = x.new_empty((x.shape[0], sum(widths)))
        block = triton.next_power_of_2(sum(widths))
        concatenate[(x.shape[0],)]((x, y), widths, (1.0, 2.0), out, sum(widths), BLOCK=block)
        return out
