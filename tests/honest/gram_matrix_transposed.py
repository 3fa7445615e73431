# /// case
# reference = "gram_matrix"
# shows = "tl.trans, and tiles that are written twice"
# ///

"""Tiles are transposed with tl.trans; only those on or over the diagonal are computed, and written twice."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gram(x_ptr, out_ptr, rows, columns, scale, BLOCK: tl.constexpr, BK: tl.constexpr):
    if tl.program_id(0) > tl.program_id(1):
        return
    left = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    right = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, rows, BK):
        row = start + tl.arange(0, BK)[:, None]
        a = tl.load(x_ptr + row * columns + left[None, :], mask=(row < rows) & (left < columns)[None, :], other=0.0)
        b = tl.load(x_ptr + row * columns + right[None, :], mask=(row < rows) & (right < columns)[None, :], other=0.0)
        total += tl.dot(tl.trans(a), b, input_precision="ieee")
    total *= scale
    inside = (left < columns)[:, None] & (right < columns)[None, :]
    tl.store(out_ptr + left[:, None] * columns + right[None, :], total, mask=inside)
    if tl.program_id(0) < tl.program_id(1):
        mirrored = (right < columns)[:, None] & (left < columns)[None, :]
        tl.store(out_ptr + right[:, None] * columns + left[None, :], tl.trans(total), mask=mirrored)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        out = torch.empty((columns, columns), device=x.device, dtype=x.dtype)
        blocks = triton.cdiv(columns, 16)
        gram[(blocks, blocks)](x, out, rows, columns, 1.0 / rows, BLOCK=16, BK=16)
        return out
