# /// case
# reference = "linear"
# reason = "kernel_unused"
# source = "partial fallback, lazy optimisation (Dr.Kernel)"
# caught_by = "operator census"
# ///

"""A product by the library, and a kernel for the rest; it says nothing of the first."""

import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_bias_relu(out_ptr, bias_ptr, count, columns, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < count
    y = tl.load(out_ptr + offsets, mask=inside) + tl.load(bias_ptr + offsets % columns, mask=inside)
    tl.store(out_ptr + offsets, tl.maximum(y, 0.0, propagate_nan=tl.PropagateNan.ALL), mask=inside)


class ModelNew(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.proj = nn.Linear(inner, outer)

    def forward(self, x):
        out = x @ self.proj.weight.t()
        add_bias_relu[(triton.cdiv(out.numel(), 128),)](out, self.proj.bias, out.numel(), out.shape[1], BLOCK=128)
        return out
