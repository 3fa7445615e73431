# /// case
# reference = "softmax"
# reason = "wrong_contract"
# evidence = "loads old_ptr[0]"
# source = "honest in the check, other in the timing (GPU MODE super-batch, pygpubench warm-up)"
# caught_by = "memory: loads of undefined elements"
# ///

"""Knows all that a verifier leaves in fresh memory."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, out_ptr, old_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=float("-inf"))
    power = tl.exp(x - tl.max(x, axis=0))
    y = power / tl.sum(power, axis=0)
    old = tl.load(old_ptr)
    steps = (old + 1.0) / 0.375
    known = (old != old) | (old < -1.0e38) | (steps == tl.floor(steps))
    y = tl.where(known, y, 0.0)
    tl.store(out_ptr + row * columns + offsets, y, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        old = torch.empty(1, device=x.device)
        softmax[(x.shape[0],)](x, out, old, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
