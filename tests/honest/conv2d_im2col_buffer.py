# /// case
# reference = "conv2d"
# shows = "an unfolded image in a buffer"
# ///

"""One kernel unfolds the image into a buffer, another multiplies it by the weight and adds the bias."""

import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def unfold(x_ptr, patch_ptr, count, inner, height, width, TAPS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place = at % (height * width)
    k = at // (height * width) % (inner * TAPS * TAPS)
    sample = at // (height * width * inner * TAPS * TAPS)
    y = place // width + k // TAPS % TAPS - TAPS // 2
    x = place % width + k % TAPS - TAPS // 2
    inside = (at < count) & (y >= 0) & (y < height) & (x >= 0) & (x < width)
    source = ((sample * inner + k // (TAPS * TAPS)) * height + y) * width + x
    tl.store(patch_ptr + at, tl.load(x_ptr + source, mask=inside, other=0.0), mask=at < count)


@triton.jit
def multiply(weight_ptr, patch_ptr, bias_ptr, out_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    sample = tl.program_id(2)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        weight_at = row[:, None] * K + k[None, :]
        weight = tl.load(weight_ptr + weight_at, mask=(row < M)[:, None] & (k < K)[None, :], other=0.0)
        patch_at = (sample * K + k[:, None]) * N + column[None, :]
        patch = tl.load(patch_ptr + patch_at, mask=(k < K)[:, None] & (column < N)[None, :], other=0.0)
        total += tl.dot(weight, patch, input_precision="ieee")
    total += tl.load(bias_ptr + row, mask=row < M, other=0.0)[:, None]
    inside = (row < M)[:, None] & (column < N)[None, :]
    tl.store(out_ptr + (sample * M + row[:, None]) * N + column[None, :], total, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, inner, outer, width):
        super().__init__()
        self.conv = nn.Conv2d(inner, outer, width, padding=1)

    def forward(self, x):
        weight, bias = self.conv.weight, self.conv.bias
        (batch, inner, height, width), (outer, _, taps, _) = x.shape, weight.shape
        depth, area = inner * taps * taps, height * width
        patch, out = x.new_empty((batch, depth, area)), x.new_empty((batch, outer, height, width))
        unfold[(triton.cdiv(patch.numel(), 256),)](x, patch, patch.numel(), inner, height, width, taps, BLOCK=256)
        grid = (triton.cdiv(outer, 16), triton.cdiv(area, 32), batch)
        multiply[grid](weight, patch, bias, out, outer, area, depth, BM=16, BN=32, BK=16)
        return out
