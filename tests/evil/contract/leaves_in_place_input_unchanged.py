# /// case
# reference = "scale_in_place"
# reason = "wrong_contract"
# evidence = "changes inputs"
# source = "side effects on inputs not compared (KernelGuard)"
# caught_by = "inputs after the call"
# ///

"""Leaves the input alone that the reference changes."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def triple(x_ptr, shifted_ptr, count, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < count
    tripled = tl.load(x_ptr + offsets, mask=inside) * 3.0
    tl.store(x_ptr + offsets, tripled, mask=inside)
    tl.store(shifted_ptr + offsets, tripled + 1.0, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.clone()
        shifted = torch.empty_like(x)
        triple[(triton.cdiv(x.numel(), 128),)](x, shifted, x.numel(), BLOCK=128)
        return {"tripled": x, "shifted": shifted}
