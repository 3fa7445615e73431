# /// case
# reference = "dequantize"
# shows = "uint8 input and compiler hints"
# ///

"""uint8 in, float32 out; compiler hints on sizes that are known."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def dequantize(x_ptr, scale_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    tl.assume(columns > 0)
    at = tl.max_contiguous(tl.multiple_of(tl.arange(0, BLOCK), BLOCK), BLOCK)
    code = tl.load(x_ptr + row * columns + at, mask=at < columns, other=0)
    y = (code.to(tl.float32) - 128.0) * tl.load(scale_ptr + row)
    tl.store(out_ptr + row * columns + at, y, mask=at < columns)


class ModelNew(nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(rows, 1))

    def forward(self, x):
        rows, columns = x.shape
        out = torch.empty((rows, columns), device=x.device, dtype=torch.float32)
        dequantize[(rows,)](x, self.scale, out, columns, BLOCK=triton.next_power_of_2(columns))
        return out
