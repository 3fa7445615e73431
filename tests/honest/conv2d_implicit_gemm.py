# /// case
# reference = "conv2d"
# shows = "a matrix product whose left operand is gathered from the image"
# ///

"""A matrix product whose left operand is gathered from the image as it is needed."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def conv2d(
    x_ptr, weight_ptr, bias_ptr, out_ptr, count, height, width, inner, outer, out_height, out_width,
    TAPS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    pixel = tl.program_id(0) * BM + tl.arange(0, BM)
    channel = tl.program_id(1) * BN + tl.arange(0, BN)
    sample, place = pixel // (out_height * out_width), pixel % (out_height * out_width)
    row, column = place // out_width, place % out_width
    depth = inner * TAPS * TAPS
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, depth, BK):
        k = start + tl.arange(0, BK)
        source, i, j = k // (TAPS * TAPS), k // TAPS % TAPS, k % TAPS
        y, x = row[:, None] + i[None, :] - 1, column[:, None] + j[None, :] - 1
        inside = (y >= 0) & (y < height) & (x >= 0) & (x < width) & (k < depth)[None, :] & (pixel < count)[:, None]
        at = ((sample[:, None] * inner + source[None, :]) * height + y) * width + x
        image = tl.load(x_ptr + at, mask=inside, other=0.0)
        weight_at = channel[None, :] * depth + k[:, None]
        weight = tl.load(weight_ptr + weight_at, mask=(channel < outer)[None, :] & (k < depth)[:, None], other=0.0)
        total = tl.dot(image, weight, total, input_precision="ieee")
    total += tl.load(bias_ptr + channel, mask=channel < outer, other=0.0)[None, :]
    at = (sample[:, None] * outer + channel[None, :]) * (out_height * out_width) + place[:, None]
    tl.store(out_ptr + at, total, mask=(pixel < count)[:, None] & (channel < outer)[None, :])


class ModelNew(nn.Module):
    def __init__(self, inner, outer, width):
        super().__init__()
        self.conv = nn.Conv2d(inner, outer, width, padding=1)

    def forward(self, x):
        weight, bias = self.conv.weight, self.conv.bias
        (batch, inner, height, width), (outer, _, taps, _) = x.shape, weight.shape
        rows, columns = height + 3 - taps, width + 3 - taps
        out = torch.empty((batch, outer, rows, columns), device=x.device, dtype=x.dtype)
        count = batch * rows * columns
        conv2d[(triton.cdiv(count, 32), triton.cdiv(outer, 16))](
            x, weight, bias, out, count, height, width, inner, outer, rows, columns, TAPS=taps, BM=32, BN=16, BK=16
        )
        return out
