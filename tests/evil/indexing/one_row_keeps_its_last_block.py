# /// case
# reference = "row_largest"
# reason = "wrong_values"
# source = "an adversary's kernels for this verifier: what no call combined"
# caught_by = "one row, its size above 200,000"
# ///

"""A single row keeps the maximum of its last block alone."""

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
        x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=float("-inf"))
        peak = tl.maximum(tl.where(tl.num_programs(0) > 1, peak, float("-inf")), tl.max(x, 0))
    tl.store(out_ptr + row, peak)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[:1], device=x.device, dtype=x.dtype)
        largest[(x.shape[0],)](x, out, x.shape[1], BLOCK=512)
        return out
