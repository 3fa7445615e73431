# /// case
# reference = "concatenate"
# shows = "two launches that write views of one output"
# ///

"""Two launches, of different grids, write into views of one output."""

import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def copy_scaled(x_ptr, out_ptr, columns, out_stride, factor, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + at, mask=at < columns)
    tl.store(out_ptr + row * out_stride + at, x * factor, mask=at < columns)


class ModelNew(nn.Module):
    def forward(self, x, y):
        rows = x.shape[0]
        out = x.new_empty((rows, x.shape[1] + y.shape[1]))
        parts = out.split([x.shape[1], y.shape[1]], dim=1)
        for given, part, factor in zip((x, y), parts, (1.0, 2.0), strict=True):
            grid = (rows, triton.cdiv(given.shape[1], 16))
            copy_scaled[grid](given, part, given.shape[1], part.stride(0), factor, BLOCK=16)
        return out
