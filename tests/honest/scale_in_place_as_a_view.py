# /// case
# reference = "scale_in_place"
# shows = "an in-place change through a flat view"
# ///

"""Works in place on a flat view, and makes the second output in the same launch."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def triple_(x, shifted, n, BLOCK: tl.constexpr):
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        i = start + tl.arange(0, BLOCK)
        v = 3.0 * tl.load(x + i, mask=i < n)
        tl.store(x + i, v, mask=i < n)
        tl.store(shifted + i, v + 1.0, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        assert x.is_contiguous()
        flat = x.view(-1)
        shifted = torch.empty_like(flat)
        triple_[(2,)](flat, shifted, flat.numel(), BLOCK=32)
        return dict(tripled=x, shifted=shifted.view(x.shape))
