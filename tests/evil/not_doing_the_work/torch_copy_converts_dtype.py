# /// case
# reference = "dequantize"
# reason = "kernel_unused"
# evidence = "_to_copy"
# source = "partial fallback (Dr.Kernel, DS audit)"
# caught_by = "operator census: a copy into another dtype computes"
# ///

"""Leaves the conversion of its numbers to PyTorch, which does it while it copies."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale_rows(x_ptr, scale_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=inside)
    scale = tl.load(scale_ptr + row)
    tl.store(x_ptr + row * columns + offsets, (x - 128.0) * scale, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(rows, 1))

    def forward(self, x):
        out = torch.empty(x.shape, device=x.device)
        out.copy_(x)
        scale_rows[(x.shape[0],)](out, self.scale, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
