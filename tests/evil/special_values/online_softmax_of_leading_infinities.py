# /// case
# reference = "biased_softmax"
# reason = "wrong_values"
# evidence = "padded"
# source = "an adversary's kernels for this verifier: special values in other places"
# caught_by = "calls with left padding"
# ///

"""Subtracts -inf from -inf where a row begins with a block of them."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, mask_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    start = tl.program_id(0) * columns
    top, total = float("-inf"), 0.0
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + start + at, mask=at < columns, other=float("-inf"))
        x += tl.load(mask_ptr + start + at, mask=at < columns, other=0.0)
        new = tl.maximum(top, tl.max(x, axis=0))
        total = total * tl.exp(top - new) + tl.sum(tl.exp(x - new), axis=0)
        top = new
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + start + at, mask=at < columns)
        x += tl.load(mask_ptr + start + at, mask=at < columns)
        tl.store(out_ptr + start + at, tl.exp(x - top) / total, mask=at < columns)


class ModelNew(nn.Module):
    def forward(self, x, mask):
        out = torch.empty_like(x)
        softmax[(x.shape[0],)](x, mask, out, x.shape[1], BLOCK=16)
        return out
