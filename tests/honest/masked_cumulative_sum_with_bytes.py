# /// case
# reference = "masked_cumulative_sum"
# shows = "a boolean mask that is read as bytes"
# ///

"""The mask is looked at as bytes; blocks carry a sum on."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def masked_cumsum_kernel(x_ptr, m_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    carry = tl.zeros((), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        inb = cols < n_cols
        x = tl.load(x_ptr + row * n_cols + cols, mask=inb, other=0.0)
        m = tl.load(m_ptr + row * n_cols + cols, mask=inb, other=0)
        x = tl.where(m != 0, x, 0.0)
        c = tl.cumsum(x, axis=0) + carry
        tl.store(y_ptr + row * n_cols + cols, c, mask=inb)
        carry = carry + tl.sum(x, axis=0)


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x, mask):
        x = x.contiguous()
        mask_u8 = mask.contiguous().view(torch.uint8)
        y = torch.empty_like(x)
        masked_cumsum_kernel[(x.shape[0],)](x, mask_u8, y, x.shape[1], BLOCK=128)
        return y
