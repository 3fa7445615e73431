# /// case
# reference = "row_argmax"
# reason = "wrong_values"
# source = "fill of a masked load (TritonBench errors)"
# caught_by = "rows far below 0"
# ///

"""Blocks are filled with -10^4, which values may be below."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def step(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    x = tl.load(x_ptr + row * columns + at, mask=inside, other=-10000.0).to(tl.float32)
    y = tl.argmax(x, axis=0)
    tl.store(out_ptr + row, y)


class ModelNew(nn.Module):
    def forward(self, x):
        columns = x.shape[-1]
        rows = x.numel() // columns
        out = torch.empty((rows,), device=x.device, dtype=torch.int64)
        step[(rows,)](x, out, columns, BLOCK=triton.next_power_of_2(columns))
        return out
