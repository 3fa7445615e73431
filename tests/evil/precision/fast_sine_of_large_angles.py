# /// case
# reference = "polar"
# reason = "wrong_values"
# source = "fast intrinsics (--use_fast_math in generated CUDA, KernelBench-Verified)"
# caught_by = "inputs with large magnitudes"
# ///

"""Takes the sine of an angle of any size by an instruction that is right for small ones."""

import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def polar(length, angle, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    r = tl.abs(tl.load(length + i, mask=i < n))
    a = tl.load(angle + i, mask=i < n)
    tl.store(out + 2 * i, r * libdevice.fast_cosf(a), mask=i < n)
    tl.store(out + 2 * i + 1, r * libdevice.fast_sinf(a), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, length, angle):
        out = torch.empty((*length.shape, 2), device=length.device)
        polar[(triton.cdiv(length.numel(), 64),)](length, angle, out, length.numel(), BLOCK=64)
        return torch.view_as_complex(out)
