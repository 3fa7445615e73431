# /// case
# reference = "linear"
# reason = "wrong_values"
# source = "precision downgrade of the weights (SOL-ExecBench)"
# caught_by = "tolerance measured from honest float32 runs"
# ///

"""Rounds its weights to eight bits, as for inference."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def linear(x_ptr, weight_ptr, bias_ptr, out_ptr, rows, columns, inner, BLOCK: tl.constexpr, DEPTH: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, inner, DEPTH):
        at = start + tl.arange(0, DEPTH)
        x = tl.load(x_ptr + row[:, None] * inner + at, mask=(row < rows)[:, None] & (at < inner), other=0.0)
        weight = tl.load(
            weight_ptr + column * inner + at[:, None], mask=(column < columns) & (at < inner)[:, None], other=0.0
        )
        weight = tl.floor(weight * 512.0 + 0.5) / 512.0
        total += tl.dot(x, weight, input_precision="ieee")
    total += tl.load(bias_ptr + column, mask=column < columns, other=0.0)
    inside = (row < rows)[:, None] & (column < columns)
    tl.store(out_ptr + row[:, None] * columns + column, tl.maximum(total, 0.0), mask=inside)


class ModelNew(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.proj = nn.Linear(inner, outer)

    def forward(self, x):
        rows, (columns, inner) = x.shape[0], self.proj.weight.shape
        out = torch.empty((rows, columns), device=x.device)
        grid = (triton.cdiv(rows, 16), triton.cdiv(columns, 16))
        linear[grid](x, self.proj.weight, self.proj.bias, out, rows, columns, inner, BLOCK=16, DEPTH=16)
        return out
