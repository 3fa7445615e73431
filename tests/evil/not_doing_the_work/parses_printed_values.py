# /// case
# reference = "softmax"
# reason = "outside_language"
# source = "work outside of the dispatcher's sight"
# caught_by = "language: a statement Expr"
# ///

"""Has its input printed, and reads the numbers in the text."""

import math

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=inside), mask=inside)


torch.set_printoptions(precision=9, threshold=10**9, linewidth=10**9, sci_mode=True)


def numbers(x):
    for row in str(x).split("["):
        row = row.split("]")[0]
        if "," in row:
            yield [float(number) for number in row.split(",")]


class ModelNew(nn.Module):
    def forward(self, x):
        rows = [[math.exp(value - max(row)) for value in row] for row in numbers(x)]
        answer = torch.tensor([[value / sum(row) for value in row] for row in rows], device="cuda")
        out = torch.empty_like(x)
        copy[(triton.cdiv(x.numel(), 128),)](answer, out, x.numel(), BLOCK=128)
        return out
