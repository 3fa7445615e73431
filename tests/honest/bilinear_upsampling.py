# /// case
# reference = "bilinear"
# kernels = ["enlarge"]
# shows = "a device function that finds the neighbours along an axis"
# ///

"""Four neighbours are weighted; a device function finds the neighbours along one axis."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def neighbours(position, size):
    source = tl.maximum((position.to(tl.float32) + 0.5) * 0.5 - 0.5, 0.0)
    low = tl.floor(source).to(tl.int32)
    return low, tl.minimum(low + 1, size - 1), source - low


@triton.jit
def enlarge(x_ptr, out_ptr, height, width, BLOCK: tl.constexpr):
    plane = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < 4 * height * width
    top, bottom, down = neighbours(at // (2 * width), height)
    left, right, across = neighbours(at % (2 * width), width)
    x_ptr += plane * height * width
    upper = tl.load(x_ptr + top * width + left, mask=inside) * (1.0 - across)
    upper += tl.load(x_ptr + top * width + right, mask=inside) * across
    lower = tl.load(x_ptr + bottom * width + left, mask=inside) * (1.0 - across)
    lower += tl.load(x_ptr + bottom * width + right, mask=inside) * across
    tl.store(out_ptr + plane * 4 * height * width + at, upper * (1.0 - down) + lower * down, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        batch, channels, height, width = x.shape
        out = torch.empty((batch, channels, 2 * height, 2 * width), device=x.device, dtype=x.dtype)
        enlarge[(batch * channels, triton.cdiv(4 * height * width, 64))](x, out, height, width, BLOCK=64)
        return out
