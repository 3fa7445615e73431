# /// case
# reference = "reversed_rows"
# shows = "tl.flip and tl.argmax on sizes that are powers of two"
# ///

"""Sizes are powers of two, so nothing is masked; tl.flip and tl.argmax; the constant is the true size."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def reverse(x_ptr, out_ptr, code_ptr, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + at)
    tl.store(out_ptr + at, tl.flip(x, 0))
    tl.store(code_ptr + at, tl.arange(0, N) == tl.argmax(x, 0))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        out = torch.empty_like(x)
        code = torch.empty((rows, columns), dtype=torch.int64, device=x.device)
        reverse[(rows,)](x, out, code, N=columns)
        return out, code
