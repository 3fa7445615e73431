# /// case
# reference = "linear"
# reason = "outside_language"
# source = "extern kernels called Triton (TritonRL, 59 % of KernelBook)"
# caught_by = "language: an import from torch._inductor.select_algorithm"
# ///

"""The library under the name that generated code gives it."""

import torch
import torch.nn as nn
import triton
import triton.language as tl
from torch._inductor.select_algorithm import extern_kernels


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
        out = torch.empty((x.shape[0], self.proj.weight.shape[0]), dtype=x.dtype, device=x.device)
        extern_kernels.mm(x, self.proj.weight.t(), out=out)
        add_bias_relu[(triton.cdiv(out.numel(), 128),)](out, self.proj.bias, out.numel(), out.shape[1], BLOCK=128)
        return out
