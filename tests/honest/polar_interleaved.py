# /// case
# reference = "polar"
# shows = "an output that is viewed as complex"
# ///

"""Real and imaginary part side by side, seen as complex numbers at the end."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def polar(length, angle, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    r = tl.abs(tl.load(length + i, mask=i < n))
    a = tl.load(angle + i, mask=i < n)
    tl.store(out + 2 * i, r * tl.cos(a), mask=i < n)
    tl.store(out + 2 * i + 1, r * tl.sin(a), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, length, angle):
        out = torch.empty((*length.shape, 2), device=length.device)
        polar[(triton.cdiv(length.numel(), 64),)](length, angle, out, length.numel(), BLOCK=64)
        return torch.view_as_complex(out)
