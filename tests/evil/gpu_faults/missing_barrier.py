# /// case
# reference = "softmax"
# reason = ["wrong_values", "not_deterministic"]
# source = "a race inside of a program (wafer)"
# needs = "gpu"
# caught_by = "verification on a GPU; programs in another order"
# ///

"""One thread reads what another has just stored, with nothing between."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row, offsets = tl.program_id(0), tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=float("-inf"))
    power = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * columns + offsets, power, mask=inside)
    turned = columns - 1 - offsets  # stored by another thread, perhaps of another warp
    back = tl.load(out_ptr + row * columns + turned, mask=inside, other=0.0)
    y = tl.load(out_ptr + row * columns + offsets, mask=inside, other=0.0) / tl.sum(back, axis=0)
    tl.store(out_ptr + row * columns + offsets, y, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        softmax[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
