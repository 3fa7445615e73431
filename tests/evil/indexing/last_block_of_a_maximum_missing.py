# /// case
# reference = "largest_magnitude"
# reason = "wrong_values"
# evidence = "for inputs"
# source = "an adversary's kernels for this verifier: tails"
# caught_by = "rows whose last number is beyond all others"
# ///

"""Leaves out the last of several blocks, which rarely has the largest."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def largest(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    top = 0.0
    for start in range(0, tl.maximum(columns - BLOCK, BLOCK), BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=0.0)
        top = tl.maximum(top, tl.max(tl.abs(x), axis=0))
    tl.store(out_ptr + row, top)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[0], device=x.device, dtype=x.dtype)
        largest[(x.shape[0],)](x, out, x.shape[1], BLOCK=1024)
        return out
