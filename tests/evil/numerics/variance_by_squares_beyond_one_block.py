# /// case
# reference = "layer_norm_rows"
# reason = "wrong_values"
# source = "an adversary's kernels for this verifier: kinds of rows at other sizes"
# caught_by = "each free size drawn beyond a thousand: rows far below 0"
# ///

"""Rows longer than a block get their variance as a difference of squares."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    first = tl.load(x_ptr + row * columns + lane, mask=lane < columns, other=0.0)
    shift = tl.where(columns > BLOCK, 0.0, tl.sum(first, 0) / columns)
    total = tl.zeros([BLOCK], tl.float32)
    square = tl.zeros([BLOCK], tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + lane
        x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=0.0)
        x = tl.where(at < columns, x - shift, 0.0)
        total += x
        square += x * x
    mean = tl.sum(total, 0) / columns
    scale = tl.rsqrt(tl.sum(square, 0) / columns - mean * mean + 1e-5)
    for start in range(0, columns, BLOCK):
        at = start + lane
        x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=0.0) - shift
        tl.store(out_ptr + row * columns + at, (x - mean) * scale, mask=at < columns)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        out = torch.empty_like(x)
        kernel[(rows,)](x, out, columns, BLOCK=1024)
        return out
