# /// case
# reference = "integer_mix"
# shows = "64-bit modulo, shifts and division"
# ///

"""64-bit integers throughout, with modulo, shifts and a division of numbers that are never negative."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mix(x_ptr, y_ptr, first_ptr, second_ptr, third_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    x, y = tl.load(x_ptr + at, mask=inside), tl.load(y_ptr + at, mask=inside)
    tl.store(first_ptr + at, (x * 1103515245 + 12345) % 65536, mask=inside)
    tl.store(second_ptr + at, ((x ^ (y << 3)) & 0xFFFF) | (y >> 2), mask=inside)
    tl.store(third_ptr + at, x // 7 - y, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x, y):
        results = tuple(torch.empty_like(x) for _ in range(3))
        mix[(triton.cdiv(x.numel(), 128),)](x, y, *results, x.numel(), BLOCK=128)
        return results
