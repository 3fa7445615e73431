# /// case
# reference = "depthwise_conv"
# shows = "taps unrolled by nested tl.static_range"
# ///

"""The taps are unrolled by two nested tl.static_range; one program does a channel's block of pixels."""

import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def depthwise(
    x_ptr, weight_ptr, bias_ptr, out_ptr, channels, height, width, out_height, out_width,
    TAPS: tl.constexpr, STRIDE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    plane = tl.program_id(0)
    channel = plane % channels
    pixel = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    row, column = pixel // out_width, pixel % out_width
    total = tl.zeros((BLOCK,), tl.float32) + tl.load(bias_ptr + channel)
    for i in tl.static_range(TAPS):
        for j in tl.static_range(TAPS):
            y, x = row * STRIDE + i - TAPS // 2, column * STRIDE + j - TAPS // 2
            inside = (y >= 0) & (y < height) & (x >= 0) & (x < width) & (pixel < out_height * out_width)
            value = tl.load(x_ptr + (plane * height + y) * width + x, mask=inside, other=0.0)
            total += value * tl.load(weight_ptr + (channel * TAPS + i) * TAPS + j)
    tl.store(out_ptr + plane * out_height * out_width + pixel, total, mask=pixel < out_height * out_width)


class ModelNew(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, width, stride=stride, padding=width // 2, groups=channels)

    def forward(self, x):
        conv, (batch, channels, height, width) = self.conv, x.shape
        taps, stride = conv.kernel_size[0], conv.stride[0]
        rows, columns = ((size + 2 * (taps // 2) - taps) // stride + 1 for size in (height, width))
        out = x.new_empty((batch, channels, rows, columns))
        depthwise[(batch * channels, triton.cdiv(rows * columns, 32))](
            x, conv.weight, conv.bias, out, channels, height, width, rows, columns,
            TAPS=taps, STRIDE=stride, BLOCK=32,
        )  # fmt: skip
        return out
