# /// case
# reference = "masked_relu"
# shows = "boolean tensors that are read and written"
# ///

"""Boolean tensors are read and written as they are."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def choose(x_ptr, mask_ptr, chosen_ptr, out_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    x = tl.load(x_ptr + at, mask=inside, other=0.0)
    allowed = tl.load(mask_ptr + at, mask=inside, other=0).to(tl.int1)
    chosen = allowed & (x > 0)
    tl.store(chosen_ptr + at, chosen, mask=inside)
    tl.store(out_ptr + at, tl.where(chosen, x, -1.0), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x, mask):
        chosen, out = torch.empty_like(mask), torch.empty_like(x)
        choose[(triton.cdiv(x.numel(), 64),)](x, mask, chosen, out, x.numel(), BLOCK=64)
        return chosen, out
