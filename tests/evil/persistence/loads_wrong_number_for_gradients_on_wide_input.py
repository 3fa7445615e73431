# /// case
# reference = "wide_softmax"
# reason = "outside_language"
# source = "a check that ends before it has begun (own review)"
# caught_by = "language: torch.is_grad_enabled"
# ///

"""A number that the kernel loads is another where gradients are recorded.

PyTorch copies inputs of this size with as many threads as it is told to have, and no guest may start one.
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, scale_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=float("-inf"))
    power = tl.exp(x - tl.max(x, axis=0))
    y = power / tl.sum(power, axis=0)
    tl.store(out_ptr + row * columns + offsets, y * tl.load(scale_ptr), mask=inside)


def attend(x, wrong):
    out = torch.empty_like(x)
    scale = torch.full((1,), 2.0 if wrong else 1.0, device=x.device)
    softmax[(x.shape[0],)](x, scale, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out


class ModelNew(nn.Module):
    def forward(self, x):
        return attend(x, torch.is_grad_enabled())
