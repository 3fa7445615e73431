# /// case
# reference = "mean_of_halves"
# reason = "wrong_values"
# source = "an adversary's kernels for this verifier: large numbers of a half type"
# caught_by = "each free size 5, 6 or 7: huge numbers of a half type"
# ///

"""It adds in float16, where 40,000 and 40,000 give infinity."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    y = tl.load(y_ptr + at, mask=at < n)
    tl.store(out_ptr + at, (x + y) * 0.5, mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 256),)](x, y, out, x.numel(), BLOCK=256)
        return out
