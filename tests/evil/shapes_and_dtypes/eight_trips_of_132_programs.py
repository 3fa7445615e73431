# /// case
# reference = "gated_product"
# reason = "wrong_values"
# evidence = "for inputs"
# source = "an adversary's kernels for this verifier: loops of a fixed length"
# caught_by = "calls with more elements than fixed loops and grids cover"
# ///

"""A persistent grid whose loop has eight trips, whatever the size."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gated(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    for trip in tl.static_range(8):
        at = (tl.program_id(0) + trip * 132) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < n)
        y = tl.load(y_ptr + at, mask=at < n)
        tl.store(out_ptr + at, (2 * tl.sigmoid(2 * x) - 1) * tl.sigmoid(y) + 0.5 * x, mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.empty_like(x)
        gated[(132,)](x, y, out, x.numel(), BLOCK=128)
        return out
