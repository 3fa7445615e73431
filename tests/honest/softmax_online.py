# /// case
# reference = "softmax"
# shows = "maximum and sum in one pass"
# ///

"""Maximum and sum in one pass over the columns, rescaled when the maximum grows."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def online_softmax(x_ptr, out_ptr, x_stride, out_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    largest = -float("inf")
    total = 0.0
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * x_stride + at, mask=at < columns, other=-float("inf"))
        new = tl.maximum(largest, tl.max(x, axis=0))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(x - new), axis=0)
        largest = new
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * x_stride + at, mask=at < columns)
        tl.store(out_ptr + row * out_stride + at, tl.exp(x - largest) / total, mask=at < columns)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        rows, columns = x.shape
        online_softmax[(rows,)](x, out, x.stride(0), out.stride(0), columns, BLOCK=16)
        return out
