# /// case
# reference = "gated_halves"
# reason = ["wrong_values", "does_not_run"]
# source = "contiguity assumed (assert_size_stride of generated code)"
# caught_by = "inputs that are not contiguous"
# ///

"""Takes the halves of its input for tensors in one piece."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def glu(value_ptr, gate_ptr, out_ptr, count, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < count
    value, gate = tl.load(value_ptr + offsets, mask=inside), tl.load(gate_ptr + offsets, mask=inside)
    tl.store(out_ptr + offsets, value * tl.sigmoid(gate), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        value, gate = x.chunk(2, dim=-1)
        out = torch.empty(value.shape, device=x.device, dtype=x.dtype)
        glu[(triton.cdiv(out.numel(), 128),)](value, gate, out, out.numel(), BLOCK=128)
        return out
