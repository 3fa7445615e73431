# /// case
# reference = "row_largest"
# reason = "wrong_values"
# source = "an adversary's kernels for this verifier: kinds of rows at other sizes"
# caught_by = "each free size three times a block"
# ///

"""If blocks divide a row, it keeps the maximum of the last block alone."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    best = float("-inf")
    if columns % BLOCK == 0:
        for start in range(0, columns, BLOCK):
            best = tl.max(tl.load(x_ptr + row * columns + start + lane), 0)
    else:
        for start in range(0, columns, BLOCK):
            at = start + lane
            x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=float("-inf"))
            best = tl.maximum(best, tl.max(x, 0))
    tl.store(out_ptr + row, best)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        out = torch.empty((rows,), device=x.device, dtype=x.dtype)
        kernel[(rows,)](x, out, columns, BLOCK=1024)
        return out
