# /// case
# reference = "add_in_place"
# shows = "a strided view of the input that is written through"
# ///

"""The kernel is given a strided view of the input, and writes through it."""

import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_to(x_ptr, y_ptr, rows, columns, x_row, x_column, y_row, y_column, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    inside = column < columns
    at = x_ptr + row * x_row + column * x_column
    y = tl.load(y_ptr + row * y_row + column * y_column, mask=inside)
    tl.store(at, tl.load(at, mask=inside) + y, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x, y):
        view = x[:, ::2]
        rows, columns = view.shape
        block = triton.next_power_of_2(columns)
        add_to[(rows,)](view, y, rows, columns, *view.stride(), *y.stride(), BLOCK=block)
        return x
