# /// case
# reference = "conv1d"
# reason = "wrong_values"
# source = "padding off by one (KernelBench-M indexing)"
# caught_by = "comparison with the oracle"
# ///

"""Starts its window one element too late."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def conv1d(
    x_ptr, w_ptr, b_ptr, out_ptr, length, inner, outer, WIDTH: tl.constexpr, PAD: tl.constexpr, BLOCK: tl.constexpr
):
    batch, channel = tl.program_id(0), tl.program_id(1)
    at = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for c in range(inner):
        for k in range(WIDTH):
            source = at + k - PAD + 1
            x = tl.load(
                x_ptr + (batch * inner + c) * length + source, mask=(source >= 0) & (source < length), other=0.0
            )
            total += x * tl.load(w_ptr + (channel * inner + c) * WIDTH + k)
    total += tl.load(b_ptr + channel)
    tl.store(out_ptr + (batch * outer + channel) * length + at, total, mask=at < length)


class ModelNew(nn.Module):
    def __init__(self, inner, outer, width):
        super().__init__()
        self.conv = nn.Conv1d(inner, outer, width, padding=width // 2)

    def forward(self, x):
        weight = self.conv.weight
        (batch, inner, length), (outer, _, width) = x.shape, weight.shape
        out = torch.empty((batch, outer, length), device=x.device, dtype=x.dtype)
        block = triton.next_power_of_2(length)
        conv1d[(batch, outer)](
            x, weight, self.conv.bias, out, length, inner, outer, WIDTH=width, PAD=width // 2, BLOCK=block
        )
        return out
