# /// case
# reference = "logsumexp"
# shows = "rows that are split among programs"
# ///

"""A row is split among programs; a second kernel combines their maxima and sums."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def partial(x_ptr, largest_ptr, sum_ptr, columns, splits, BLOCK: tl.constexpr):
    row, split = tl.program_id(0), tl.program_id(1)
    at = split * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=float("-inf"))
    largest = tl.max(x, axis=0)
    tl.store(largest_ptr + row * splits + split, largest)
    tl.store(sum_ptr + row * splits + split, tl.sum(tl.exp(x - largest), axis=0))


@triton.jit
def combine(largest_ptr, sum_ptr, out_ptr, splits, SPLITS: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, SPLITS)
    largest = tl.load(largest_ptr + row * splits + at, mask=at < splits, other=float("-inf"))
    total = tl.load(sum_ptr + row * splits + at, mask=at < splits, other=0.0)
    top = tl.max(largest, axis=0)
    tl.store(out_ptr + row, top + tl.log(tl.sum(total * tl.exp(largest - top), axis=0)))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        splits = triton.cdiv(columns, 32)
        largest = torch.empty((rows, splits), device=x.device, dtype=torch.float32)
        total, out = torch.empty_like(largest), x.new_empty((rows,))
        partial[(rows, splits)](x, largest, total, columns, splits, BLOCK=32)
        combine[(rows,)](largest, total, out, splits, SPLITS=triton.next_power_of_2(splits))
        return out
