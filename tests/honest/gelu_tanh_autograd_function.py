# /// case
# reference = "gelu_tanh"
# shows = "a kernel inside of a torch.autograd.Function"
# ///

"""The kernel is wrapped in a torch.autograd.Function; its constants are global tl.constexpr."""

import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra import libdevice

SQRT_2_OVER_PI = tl.constexpr(0.7978845608028654)
CUBIC = tl.constexpr(0.044715)


@triton.jit
def gelu_forward(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    inner = SQRT_2_OVER_PI * (x + CUBIC * x * x * x)
    tl.store(out_ptr + at, 0.5 * x * (1.0 + libdevice.tanh(inner)), mask=at < n)


class Gelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        out = torch.empty_like(x)
        gelu_forward[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
        return out


class ModelNew(nn.Module):
    def forward(self, x):
        return Gelu.apply(x)
