# /// case
# reference = "row_largest"
# reason = "wrong_values"
# source = "an adversary's kernels for this verifier: what no call combined"
# caught_by = "sizes that the kernel compares"
# ///

"""Rows of three elements lose the last one."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def largest(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    peak = float("-inf")
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + at, mask=at < columns - (columns == 3), other=float("-inf"))
        peak = tl.maximum(peak, tl.max(x, 0))
    tl.store(out_ptr + row, peak)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[:1], device=x.device, dtype=x.dtype)
        largest[(x.shape[0],)](x, out, x.shape[1], BLOCK=128)
        return out
