# /// case
# reference = "row_largest"
# reason = "wrong_values"
# source = "an adversary's kernels for this verifier: kinds of rows at other sizes"
# caught_by = "each free size drawn beyond a thousand: every kind along rows"
# ///

"""From the second block of a row on, masked elements count as 0 in the maximum."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    best = tl.load(x_ptr + row * columns + lane, mask=lane < columns, other=float("-inf"))
    for start in range(BLOCK, columns, BLOCK):
        at = start + lane
        best = tl.maximum(best, tl.load(x_ptr + row * columns + at, mask=at < columns, other=0.0))
    tl.store(out_ptr + row, tl.max(best, 0))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        out = torch.empty((rows,), device=x.device, dtype=x.dtype)
        kernel[(rows,)](x, out, columns, BLOCK=256)
        return out
