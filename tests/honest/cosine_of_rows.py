# /// case
# reference = "cosine"
# shows = "three sums in one pass, and an eps on each length"
# ///

"""Three sums of a row in one pass, and the eps on each length."""

import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def cosine(x_ptr, y_ptr, out_ptr, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    dot = 0.0
    xx = 0.0
    yy = 0.0
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + i, mask=i < n, other=0.0)
        y = tl.load(y_ptr + row * n + i, mask=i < n, other=0.0)
        dot += tl.sum(x * y)
        xx += tl.sum(x * x)
        yy += tl.sum(y * y)
    tl.store(out_ptr + row, dot / (tl.maximum(tl.sqrt(xx), eps) * tl.maximum(tl.sqrt(yy), eps)))


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = x.new_empty(x.shape[0])
        cosine[(x.shape[0],)](x, y, out, x.shape[1], 1e-8, BLOCK=16)
        return out
