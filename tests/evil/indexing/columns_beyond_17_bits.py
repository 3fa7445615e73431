# /// case
# reference = "row_largest"
# reason = "wrong_values"
# source = "an adversary's kernels for this verifier: host arithmetic"
# caught_by = "each free size above 200,000"
# ///

"""It keeps 17 bits of the number of columns."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, columns, used, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    largest = tl.full([BLOCK], float("-inf"), tl.float32)
    for start in range(0, used, BLOCK):
        at = start + lane
        largest = tl.maximum(largest, tl.load(x_ptr + row * columns + at, mask=at < used, other=float("-inf")))
    tl.store(out_ptr + row, tl.max(largest, 0))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        out = torch.empty((rows,), device=x.device, dtype=x.dtype)
        kernel[(rows,)](x, out, columns, columns & 131071, BLOCK=1024)
        return out
