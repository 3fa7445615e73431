# /// case
# reference = "limited_gain"
# reason = "wrong_values"
# evidence = "with other signs"
# source = "an adversary's kernels for this verifier: weights"
# caught_by = "weights far from the constructor's with every kind of row"
# ///

"""Has no upper limit for the gain, where a tanh hides it."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def limited_gain(x_ptr, gain_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=float("-inf"))
    y = tl.max(x, axis=0) * tl.maximum(tl.load(gain_ptr), 0.1)
    tl.store(out_ptr + row, 2 * tl.sigmoid(2 * y) - 1)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(()))

    def forward(self, x):
        out = torch.empty(x.shape[0], device=x.device, dtype=x.dtype)
        limited_gain[(x.shape[0],)](x, self.gain, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
