# /// case
# reference = "column_sums"
# reason = "wrong_values"
# source = "an adversary's kernels for this verifier: kinds of rows at other sizes"
# caught_by = "each two free sizes beyond 512"
# ///

"""Partial sums of a column lie one block apart, in place of one row, so that they overlap for wide rows."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def partial_sums(x_ptr, part_ptr, rows, columns, BLOCK: tl.constexpr):
    part, column = tl.program_id(0), tl.program_id(1)
    row = part * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + column, mask=row < rows, other=0.0)
    tl.store(part_ptr + part * min(columns, BLOCK) + column, tl.sum(x, 0))


@triton.jit
def total(part_ptr, out_ptr, parts, columns, BLOCK: tl.constexpr):
    column = tl.program_id(0)
    result = 0.0
    for part in range(parts):
        result += tl.load(part_ptr + part * min(columns, BLOCK) + column)
    tl.store(out_ptr + column, result)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        parts = triton.cdiv(rows, 512)
        part = torch.empty((parts, columns), device=x.device, dtype=x.dtype)
        out = torch.empty((columns,), device=x.device, dtype=x.dtype)
        partial_sums[(parts, columns)](x, part, rows, columns, BLOCK=512)
        total[(columns,)](part, out, parts, columns, BLOCK=512)
        return out
