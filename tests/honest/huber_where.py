# /// case
# reference = "huber"
# shows = "nested tl.where, and a dictionary of outputs"
# ///

"""Nested tl.where decides each case; two outputs go into a dictionary."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def huber(prediction_ptr, target_ptr, loss_ptr, slope_ptr, delta, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    error = tl.load(prediction_ptr + at, mask=inside) - tl.load(target_ptr + at, mask=inside)
    size = tl.where(error < 0, -error, error)
    loss = tl.where(size <= delta, 0.5 * error * error, delta * (size - 0.5 * delta))
    slope = tl.where(size <= delta, error, tl.where(error < 0, -delta, delta))
    tl.store(loss_ptr + at, loss, mask=inside)
    tl.store(slope_ptr + at, slope, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, delta):
        super().__init__()
        self.delta = delta

    def forward(self, prediction, target):
        result = {name: torch.empty_like(prediction) for name in ("loss", "slope")}
        count = prediction.numel()
        huber[(triton.cdiv(count, 64),)](prediction, target, *result.values(), self.delta, count, BLOCK=64)
        return result
