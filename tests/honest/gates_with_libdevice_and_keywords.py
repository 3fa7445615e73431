# /// case
# reference = "gates"
# shows = "libdevice's tanh, and arguments by keyword"
# ///

"""libdevice's tanh, and every argument by its name."""

import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def gate(x_ptr, y_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(pointer=x_ptr + offsets, mask=mask, other=0.0)
    y = tl.load(pointer=y_ptr + offsets, mask=mask, other=0.0)
    tl.store(pointer=out_ptr + offsets, value=libdevice.tanh(x) * tl.sigmoid(y), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.empty_like(input=x)
        gate[(triton.cdiv(x.numel(), 64), 1, 1)](
            x_ptr=x, y_ptr=y, out_ptr=out, n_elements=x.numel(), BLOCK_SIZE=64, num_warps=2, num_stages=2
        )
        return out
