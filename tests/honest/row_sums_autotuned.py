# /// case
# reference = "row_sums"
# shows = "an autotuned reduction"
# ///

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=["columns"])
@triton.jit
def row_sum_and_max(x_ptr, sum_ptr, max_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    largest = tl.full((BLOCK,), float("-inf"), dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        inside = start + offsets < columns
        x = tl.load(x_ptr + row * columns + start + offsets, mask=inside, other=0.0)
        total += x
        largest = tl.maximum(largest, tl.where(inside, x, float("-inf")))
    tl.store(sum_ptr + row, tl.sum(total, axis=0))
    tl.store(max_ptr + row, tl.max(largest, axis=0))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        total = torch.empty((rows,), device=x.device, dtype=x.dtype)
        largest = torch.empty_like(total)
        row_sum_and_max[(rows,)](x, total, largest, columns)
        return total, largest
