# /// case
# reference = "column_sums"
# kernels = ["column_sums"]
# deterministic = false
# shows = "atomics under a tuner with reset_to_zero"
# ///

"""Atomics under a tuner that is told to clear what they add to."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(
    configs=[triton.Config({"ROWS": rows, "BLOCK": block}) for rows in (16, 32) for block in (16, 32)],
    key=["rows", "columns"],
    reset_to_zero=["out_ptr"],
)
@triton.jit
def column_sums(x_ptr, out_ptr, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    x = tl.load(x_ptr + row * columns + column, mask=(row < rows) & (column < columns), other=0.0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr + at, tl.sum(x, axis=0), mask=at < columns)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        out = torch.zeros(columns, dtype=x.dtype, device=x.device)

        def grid(meta):
            return (triton.cdiv(rows, meta["ROWS"]), triton.cdiv(columns, meta["BLOCK"]))

        column_sums[grid](x, out, rows, columns)
        return out
