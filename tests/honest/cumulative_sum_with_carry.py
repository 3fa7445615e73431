# /// case
# reference = "cumulative_sum"
# kernels = ["cumulative_sum"]
# shows = "a scan block by block that carries the last sum on"
# ///

"""One program for each row scans block by block with tl.associative_scan and carries the last sum on."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def cumulative_sum(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    carry = 0.0
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=0.0)
        tl.store(out_ptr + row * columns + at, carry + tl.associative_scan(x, 0, add), mask=at < columns)
        carry += tl.sum(x, axis=0)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        cumulative_sum[(x.shape[0],)](x, out, x.shape[1], BLOCK=32)
        return out
