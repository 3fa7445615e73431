# /// case
# reference = "softmax"
# reason = "wrong_values"
# source = "missing rescale of the online softmax (gpuemu)"
# caught_by = "comparison with the oracle"
# ///

"""An online softmax that keeps its old sum when a larger maximum comes."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row, offsets = tl.program_id(0), tl.arange(0, BLOCK)
    largest, total = float("-inf"), 0.0
    for start in range(0, columns, BLOCK):
        inside = start + offsets < columns
        x = tl.load(x_ptr + row * columns + start + offsets, mask=inside, other=float("-inf"))
        largest = tl.maximum(largest, tl.max(x, axis=0))
        total += tl.sum(tl.exp(x - largest), axis=0)
    for start in range(0, columns, BLOCK):
        inside = start + offsets < columns
        x = tl.load(x_ptr + row * columns + start + offsets, mask=inside, other=0.0)
        tl.store(out_ptr + row * columns + start + offsets, tl.exp(x - largest) / total, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        softmax[(x.shape[0],)](x, out, x.shape[1], BLOCK=16)
        return out
