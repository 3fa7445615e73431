# /// case
# reference = "linear"
# reason = "kernel_unused"
# extern_ops = ["aten.mm"]
# source = "part of the work in the library (Dr.Kernel, DS audit)"
# caught_by = "operator census"
# ///

"""Says that it uses a library for the product, and not that it also does so for the activation."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_bias_relu(out_ptr, bias_ptr, count, columns, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < count
    y = tl.load(out_ptr + offsets, mask=inside) + tl.load(bias_ptr + offsets % columns, mask=inside)
    tl.store(out_ptr + offsets, y, mask=inside)


class ModelNew(nn.Module):
    """Says what it is: the product runs in a library, the rest in a kernel."""

    def __init__(self, inner, outer):
        super().__init__()
        self.proj = nn.Linear(inner, outer)

    def forward(self, x):
        out = torch.mm(x, self.proj.weight.t())
        add_bias_relu[(triton.cdiv(out.numel(), 128),)](out, self.proj.bias, out.numel(), out.shape[1], BLOCK=128)
        return torch.relu(out)
