# /// case
# reference = "column_sums"
# reason = "wrong_values"
# source = "a tuner runs a kernel many times on its output (Triton's reset_to_zero)"
# kernels = ["column_sums"]
# caught_by = "interpreter: an autotuned kernel runs once more before the launch that counts"
# ///

"""Adds to zeros under a tuner that is not told to clear them: each timing adds once more."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"ROWS": 16}), triton.Config({"ROWS": 32})], key=["rows"])
@triton.jit
def column_sums(x_ptr, out_ptr, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = tl.arange(0, BLOCK)
    inside = (row < rows)[:, None] & (at < columns)[None, :]
    x = tl.load(x_ptr + row[:, None] * columns + at[None, :], mask=inside, other=0.0)
    tl.atomic_add(out_ptr + at, tl.sum(x, axis=0), mask=at < columns)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        out = torch.zeros(columns, dtype=x.dtype, device=x.device)
        block = triton.next_power_of_2(columns)
        column_sums[lambda meta: (triton.cdiv(rows, meta["ROWS"]),)](x, out, rows, columns, BLOCK=block)
        return out
