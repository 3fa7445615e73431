# /// case
# reference = "centred"
# reason = "wrong_values"
# evidence = "with other signs"
# source = "an adversary's kernels for this verifier: weights"
# caught_by = "weights with other signs, also of buffers"
# ///

"""Takes a mean that is negative for its size."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def centre(x_ptr, mean_ptr, out_ptr, n, columns, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    mean = tl.load(mean_ptr + at % columns, mask=at < n)
    tl.store(out_ptr + at, x - tl.abs(mean), mask=at < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("running_mean", torch.zeros(24))

    def forward(self, x):
        out = torch.empty_like(x)
        n = x.numel()
        centre[(triton.cdiv(n, 128),)](x, self.running_mean, out, n, x.shape[-1], BLOCK=128)
        return out
