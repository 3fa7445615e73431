# /// case
# reference = "softmax"
# reason = "wrong_contract"
# evidence = "count: OutOfBounds: a kernel stores to seen_ptr"
# source = "honest in the check, other in the timing (GPU MODE super-batch, pygpubench warm-up)"
# caught_by = "memory: stores to memory that outlives the call"
# ///

"""Counts inputs in the file's memory, not calls: a repeated input changes nothing."""

import torch
import torch.nn as nn
import triton
import triton.language as tl

SEEN = torch.zeros(2, device="cuda")


@triton.jit
def softmax(x_ptr, out_ptr, seen_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=float("-inf"))
    power = tl.exp(x - tl.max(x, axis=0))
    y = tl.where(tl.load(seen_ptr) > 100.0, 0.0, power / tl.sum(power, axis=0))
    tl.store(out_ptr + row * columns + offsets, y, mask=inside)


@triton.jit
def count(x_ptr, seen_ptr):
    first = tl.load(x_ptr)
    if first != tl.load(seen_ptr + 1):
        tl.store(seen_ptr, tl.load(seen_ptr) + 1.0)
        tl.store(seen_ptr + 1, first)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        softmax[(x.shape[0],)](x, out, SEEN, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        count[(1,)](x, SEEN)
        return out
