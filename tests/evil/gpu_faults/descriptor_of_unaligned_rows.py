# /// case
# reference = "softmax"
# reason = "does_not_run"
# evidence = "multiples of 16 bytes"
# source = "right in an interpreter alone (generated code)"
# caught_by = "interpreter: descriptor rows at multiples of 16 bytes"
# ///

"""A tensor descriptor of rows that begin where a GPU's tensor maps cannot."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr):
    row, offsets = tl.program_id(0), tl.arange(0, BLOCK)
    whole = tl.make_tensor_descriptor(x_ptr, shape=[rows, columns], strides=[columns, 1], block_shape=[1, BLOCK])
    x = tl.where(offsets < columns, tl.reshape(whole.load([row, 0]), (BLOCK,)), float("-inf"))
    power = tl.exp(x - tl.max(x, axis=0))
    y = power / tl.sum(power, axis=0)
    tl.store(out_ptr + row * columns + offsets, y, mask=offsets < columns)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device="cuda"))

    def forward(self, x):
        out = torch.empty_like(x)
        softmax[(x.shape[0],)](x, out, *x.shape, BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
