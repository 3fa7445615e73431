# /// case
# reference = "top_values"
# shows = "tl.topk on packed 64-bit keys"
# ///

"""Value and index are packed into one 64-bit key, so that one tl.topk orders both."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def top_k(x_ptr, value_ptr, index_ptr, columns, k, K: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=float("-inf"))
    bits = x.to(tl.int32, bitcast=True)
    ordered = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)  # compares as the float does
    key = (ordered.to(tl.int64) << 32) | (BLOCK - 1 - at).to(tl.int64)
    best = tl.topk(key, K)
    rank = tl.arange(0, K)
    index = BLOCK - 1 - (best & 0xFFFFFFFF)
    bits = (best >> 32).to(tl.int32)
    value = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits).to(tl.float32, bitcast=True)
    tl.store(value_ptr + row * k + rank, value, mask=rank < k)
    tl.store(index_ptr + row * k + rank, index, mask=rank < k)


class ModelNew(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.k = k

    def forward(self, x):
        rows, columns = x.shape
        value = x.new_empty((rows, self.k))
        index = torch.empty((rows, self.k), dtype=torch.int64, device=x.device)
        block = triton.next_power_of_2(columns)
        top_k[(rows,)](x, value, index, columns, self.k, K=triton.next_power_of_2(self.k), BLOCK=block)
        return value, index
