# /// case
# reference = "entropy"
# reason = "wrong_values"
# source = "an adversary's kernels for this verifier: ends of ranges"
# caught_by = "each free size 5, 6 or 7: the ends of a range"
# ///

"""It multiplies 0 by the logarithm of 0."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + lane
        x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=1.0)
        total -= x * tl.log(x)
    tl.store(out_ptr + row, tl.sum(total, 0))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        out = torch.empty((rows,), device=x.device, dtype=x.dtype)
        kernel[(rows,)](x, out, columns, BLOCK=256)
        return out
