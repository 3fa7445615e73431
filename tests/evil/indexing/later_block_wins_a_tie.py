# /// case
# reference = "row_argmax"
# reason = "wrong_values"
# source = "an adversary's kernels for this verifier: kinds of rows at other sizes"
# caught_by = "each free size drawn beyond a thousand: rows of equal values"
# ///

"""It returns the later of two equal maxima in different blocks."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    best = float("-inf")
    where = 0
    for start in range(0, columns, BLOCK):
        at = start + lane
        x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=float("-inf"))
        largest = tl.max(x, 0)
        where = tl.where(largest >= best, start + tl.argmax(x, 0), where)
        best = tl.maximum(best, largest)
    tl.store(out_ptr + row, where)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        out = torch.empty((rows,), device=x.device, dtype=torch.int64)
        kernel[(rows,)](x, out, columns, BLOCK=1024)
        return out
