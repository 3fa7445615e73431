# /// case
# reference = "scaled_rows"
# reason = "does_not_run"
# evidence = "outside"
# source = "a dropped mask (KernelBench-M masking), of an operand that is read more than once"
# caught_by = "bounds of every address"
# ///

"""Reads a scale for elements that are none, which no block of a table of powers of two has."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale_rows(x_ptr, scale_ptr, out_ptr, columns, n_elements, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    scale = tl.load(scale_ptr + offsets // columns)
    tl.store(out_ptr + offsets, x * scale, mask=mask)


class ModelNew(nn.Module):
    def forward(self, x, scale):
        x, scale = x.contiguous(), scale.contiguous()
        out = torch.empty_like(x)
        scale_rows[(triton.cdiv(x.numel(), 128),)](x, scale, out, x.shape[1], x.numel(), BLOCK=128)
        return out
