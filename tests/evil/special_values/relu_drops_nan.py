# /// case
# reference = "roots"
# reason = "wrong_values"
# evidence = "NaN"
# source = "NaN as a wildcard of the comparison (pygpubench, SOL-ExecBench)"
# caught_by = "NaN must stand where the oracle has it"
# ///

"""A maximum with 0 turns NaN into 0."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def roots(x_ptr, y_ptr, positive_ptr, larger_ptr, count, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < count
    root = tl.sqrt_rn(tl.load(x_ptr + offsets, mask=inside) + 2.0)
    y = tl.load(y_ptr + offsets, mask=inside)
    positive = tl.maximum(root - 1.0, 0.0)
    larger = tl.maximum(root, y, propagate_nan=tl.PropagateNan.ALL)
    tl.store(positive_ptr + offsets, positive, mask=inside)
    tl.store(larger_ptr + offsets, larger, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x, y):
        positive, larger = torch.empty_like(x), torch.empty_like(x)
        roots[(triton.cdiv(x.numel(), 128),)](x, y, positive, larger, x.numel(), BLOCK=128)
        return positive, larger
