# /// case
# reference = "transposed_conv"
# shows = "inputs that are gathered for each output"
# ///

"""Each output pixel gathers the inputs that reach it: those for which the stride divides the distance."""

import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def conv_transpose(
    x_ptr, weight_ptr, bias_ptr, out_ptr, inner, outer, height, width, out_height, out_width,
    TAPS: tl.constexpr, STRIDE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    sample, channel = tl.program_id(0), tl.program_id(1)
    pixel = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    row, column = pixel // out_width, pixel % out_width
    total = tl.zeros((BLOCK,), tl.float32)
    for source in range(inner):
        for i in tl.static_range(TAPS):
            for j in tl.static_range(TAPS):
                y, x = row + 1 - i, column + 1 - j
                reached = (y >= 0) & (x >= 0) & (y % STRIDE == 0) & (x % STRIDE == 0)
                y, x = y // STRIDE, x // STRIDE
                reached = reached & (y < height) & (x < width)
                value = tl.load(x_ptr + ((sample * inner + source) * height + y) * width + x, mask=reached, other=0.0)
                total += value * tl.load(weight_ptr + ((source * outer + channel) * TAPS + i) * TAPS + j)
    total += tl.load(bias_ptr + channel)
    start = (sample * outer + channel) * out_height * out_width
    tl.store(out_ptr + start + pixel, total, mask=pixel < out_height * out_width)


class ModelNew(nn.Module):
    def __init__(self, inner, outer, width, stride):
        super().__init__()
        self.conv = nn.ConvTranspose2d(inner, outer, width, stride=stride, padding=1)

    def forward(self, x):
        conv, (batch, inner, height, width) = self.conv, x.shape
        outer, taps, stride = conv.out_channels, conv.kernel_size[0], conv.stride[0]
        rows, columns = ((size - 1) * stride - 2 + taps for size in (height, width))
        out = x.new_empty((batch, outer, rows, columns))
        conv_transpose[(batch, outer, triton.cdiv(rows * columns, 64))](
            x, conv.weight, conv.bias, out, inner, outer, height, width, rows, columns,
            TAPS=taps, STRIDE=stride, BLOCK=64,
        )  # fmt: skip
        return out
