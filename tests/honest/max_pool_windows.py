# /// case
# reference = "max_pool"
# shows = "unrolled windows with minus infinity outside"
# ///

"""Windows are unrolled; outside of the image stands minus infinity."""

import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def max_pool(
    x_ptr, out_ptr, count, height, width, out_height, out_width,
    SIZE: tl.constexpr, STRIDE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column, row, plane = at % out_width, at // out_width % out_height, at // (out_width * out_height)
    largest = tl.full((BLOCK,), float("-inf"), dtype=x_ptr.dtype.element_ty)
    for i in tl.static_range(SIZE):
        for j in tl.static_range(SIZE):
            y, x = row * STRIDE + i - 1, column * STRIDE + j - 1
            inside = (y >= 0) & (y < height) & (x >= 0) & (x < width) & (at < count)
            value = tl.load(x_ptr + (plane * height + y) * width + x, mask=inside, other=float("-inf"))
            largest = tl.maximum(largest, value, propagate_nan=tl.PropagateNan.ALL)
    tl.store(out_ptr + at, largest, mask=at < count)


class ModelNew(nn.Module):
    def __init__(self, size, stride):
        super().__init__()
        self.pool = nn.MaxPool2d(size, stride=stride, padding=1)

    def forward(self, x):
        size, stride = self.pool.kernel_size, self.pool.stride
        batch, channels, height, width = x.shape
        rows, columns = (height + 2 - size) // stride + 1, (width + 2 - size) // stride + 1
        out = x.new_empty((batch, channels, rows, columns))
        grid = (triton.cdiv(out.numel(), 128),)
        max_pool[grid](x, out, out.numel(), height, width, rows, columns, SIZE=size, STRIDE=stride, BLOCK=128)
        return out
