# /// case
# reference = "cumulative_sum"
# shows = "running sums as a product with a triangle of ones"
# ///

"""A block's running sums are a product with a triangle of ones, and a carry."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def running_sums(x_ptr, out_ptr, rows, n, R: tl.constexpr, B: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)
    i = tl.arange(0, B)
    triangle = (i[:, None] <= i[None, :]).to(tl.float32)
    carry = tl.zeros((R,), tl.float32)
    for start in range(0, n, B):
        c = start + i
        mask = (r < rows)[:, None] & (c < n)[None, :]
        x = tl.load(x_ptr + r[:, None] * n + c[None, :], mask=mask, other=0.0)
        y = tl.dot(x, triangle, input_precision="ieee") + carry[:, None]
        tl.store(out_ptr + r[:, None] * n + c[None, :], y, mask=mask)
        carry += tl.sum(x, 1)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        running_sums[(triton.cdiv(x.shape[0], 16),)](x, out, x.shape[0], x.shape[1], R=16, B=16)
        return out
