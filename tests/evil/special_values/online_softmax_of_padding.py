# /// case
# reference = "padded_softmax"
# reason = "wrong_values"
# evidence = "NaN"
# source = "a running maximum that starts at -inf"
# caught_by = "trials: masks that begin with padding"
# ///

"""Subtracts -inf from -inf where a whole block is masked."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def padded_softmax(x_ptr, hidden_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    start = tl.program_id(0) * columns
    largest, total = float("-inf"), 0.0
    for first in range(0, columns, BLOCK):
        offsets = first + tl.arange(0, BLOCK)
        inside = offsets < columns
        hidden = tl.load(hidden_ptr + start + offsets, mask=inside, other=1) & (offsets < columns - 1)
        x = tl.load(x_ptr + start + offsets, mask=inside, other=float("-inf"))
        x = tl.where(hidden, float("-inf"), x)
        new = tl.maximum(largest, tl.max(x))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(x - new))
        largest = new
    for first in range(0, columns, BLOCK):
        offsets = first + tl.arange(0, BLOCK)
        inside = offsets < columns
        hidden = tl.load(hidden_ptr + start + offsets, mask=inside, other=1) & (offsets < columns - 1)
        x = tl.load(x_ptr + start + offsets, mask=inside, other=float("-inf"))
        tl.store(out_ptr + start + offsets, tl.where(hidden, 0.0, tl.exp(x - largest) / total), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x, hidden):
        out = torch.empty_like(x)
        padded_softmax[(x.shape[0],)](x, hidden, out, x.shape[1], BLOCK=16)
        return out
