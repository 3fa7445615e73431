# /// case
# reference = "mean_square"
# reason = "wrong_values"
# evidence = "for inputs"
# source = "an adversary's kernels for this verifier: numbers of programs"
# caught_by = "calls with a hundredth more rows than 65,536"
# ///

"""A row's number has 16 bits: the rows beyond 65,536 are missing in the mean, which they hardly change."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def squares(x_ptr, part_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.uint16).to(tl.int32)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=0.0)
    tl.store(part_ptr + row, tl.sum(x * x, axis=0))


@triton.jit
def combine(part_ptr, out_ptr, rows, elements, BLOCK: tl.constexpr):
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, rows, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(part_ptr + at, mask=at < rows, other=0.0)
    tl.store(out_ptr, tl.sum(total, axis=0) / elements)


class ModelNew(nn.Module):
    def forward(self, x):
        columns = x.shape[-1]
        rows = x.numel() // columns
        part = torch.zeros(rows, device=x.device, dtype=x.dtype)
        out = torch.empty((), device=x.device, dtype=x.dtype)
        squares[(rows,)](x, part, columns, BLOCK=triton.next_power_of_2(columns))
        combine[(1,)](part, out, rows, x.numel(), BLOCK=1024)
        return out
