# /// case
# reference = "jensen_shannon"
# shows = "exponentials whose largest factor is taken out"
# ///

"""The exponentials of both rows share a factor, so that equal rows differ by roundoff."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def jensen_shannon(x_ptr, y_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row, total = tl.program_id(0), 0.0
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < columns
        x = tl.load(x_ptr + row * columns + at, mask=inside, other=-float("inf"))
        y = tl.load(y_ptr + row * columns + at, mask=inside, other=-float("inf"))
        largest = tl.maximum(tl.max(x, axis=0), tl.max(y, axis=0))
        factor = tl.exp(largest)
        p, q = tl.exp(x - largest) * factor, tl.exp(y - largest) * factor
        mean = tl.log(tl.where(inside, 0.5 * (p + q), 1.0))
        terms = p * (tl.where(inside, x, 0.0) - mean) + q * (tl.where(inside, y, 0.0) - mean)
        total += 0.5 * tl.sum(terms, axis=0)
    tl.store(out_ptr + row, total)


@triton.jit
def log_softmax(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=-float("inf"))
    x = x - tl.max(x, axis=0)
    tl.store(out_ptr + row * columns + at, x - tl.log(tl.sum(tl.exp(x), axis=0)), mask=at < columns)


class ModelNew(nn.Module):
    def forward(self, x, y):
        rows, columns = x.shape
        block = triton.next_power_of_2(columns)
        p, q = torch.empty_like(x), torch.empty_like(y)
        log_softmax[(rows,)](x, p, columns, BLOCK=block)
        log_softmax[(rows,)](y, q, columns, BLOCK=block)
        out = torch.empty(rows, dtype=x.dtype, device=x.device)
        jensen_shannon[(rows,)](p, q, out, columns, BLOCK=min(block, 256))
        return out
