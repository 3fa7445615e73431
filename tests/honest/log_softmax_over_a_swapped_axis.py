# /// case
# reference = "channel_log_softmax"
# shows = "axes that a list swaps"
# ///

"""Swaps the axis of channels with the last one, where it is another."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def log_softmax(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=-float("inf"))
    x = x - tl.max(x, axis=0)
    tl.store(out_ptr + row * columns + at, x - tl.log(tl.sum(tl.exp(x), axis=0)), mask=at < columns)


class ModelNew(nn.Module):
    def __init__(self, dim=1):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        order = None
        if self.dim != x.dim() - 1:
            order = list(range(x.dim()))
            order[self.dim], order[-1] = order[-1], order[self.dim]
            x = x.permute(order)
        x = x.contiguous()
        out = torch.empty_like(x)
        columns = x.shape[-1]
        log_softmax[(x.numel() // columns,)](x, out, columns, BLOCK=triton.next_power_of_2(columns))
        return out.permute(order).contiguous() if order is not None else out
