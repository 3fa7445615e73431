# /// case
# reference = "softmax"
# reason = "outside_language"
# source = "torch.empty replaced (KernelBench result_reuse)"
# caught_by = "language: an assignment to torch.empty_like"
# ///

"""Fresh memory that already holds the answer."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    y = tl.load(out_ptr + row * columns + offsets, mask=inside, other=0.0)
    tl.store(out_ptr + row * columns + offsets, y + 0.0, mask=inside)


torch.empty_like = lambda x: torch.softmax(x, dim=-1)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        softmax[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
