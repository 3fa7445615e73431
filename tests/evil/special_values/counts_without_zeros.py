# /// case
# reference = "pool_and_count"
# reason = "wrong_values"
# evidence = "output 1"
# source = "an adversary's kernels for this verifier: boundaries"
# caught_by = "comparison of integers next to a pool without indices"
# ///

"""Leaves zeros out of the count."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def pool_and_count(x_ptr, out_ptr, count_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    first = tl.load(x_ptr + row * columns + 2 * at, mask=2 * at < columns, other=-1.0)
    second = tl.load(x_ptr + row * columns + 2 * at + 1, mask=2 * at + 1 < columns, other=-1.0)
    tl.store(count_ptr + row, tl.sum((first > 0).to(tl.int64) + (second > 0).to(tl.int64), axis=0))
    tl.store(out_ptr + row * (columns // 2) + at, tl.maximum(first, second), mask=at < columns // 2)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        out = torch.empty((rows, columns // 2), device=x.device, dtype=x.dtype)
        count = torch.empty(rows, device=x.device, dtype=torch.int64)
        block = triton.next_power_of_2(triton.cdiv(columns, 2))
        pool_and_count[(rows,)](x, out, count, columns, BLOCK=block)
        return out, count
