# /// case
# reference = "no_event"
# reason = "wrong_values"
# evidence = "for inputs"
# source = "an adversary's kernels for this verifier: sizes"
# caught_by = "calls with normal values and rows longer than 1,024 columns"
# ///

"""One block of 1,024 columns; most longer products vanish."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def multiply(a, b):
    return a * b


@triton.jit
def none_of(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=float("-inf"))
    tl.store(out_ptr + row, tl.reduce(1 - tl.sigmoid(x - 6), 0, multiply))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[0], device=x.device, dtype=x.dtype)
        none_of[(x.shape[0],)](x, out, x.shape[1], BLOCK=1024)
        return out
