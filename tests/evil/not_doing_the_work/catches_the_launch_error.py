# /// case
# reference = "softmax"
# reason = "does_not_run"
# source = "try/except with a fallback to the reference (Kevin, KernelBench's static checker)"
# caught_by = "language: Triton has no triton.language.exponential"
# ///

"""The kernel fails each time, and PyTorch steps in."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=float("-inf"))
    power = tl.exponential(x - tl.max(x, axis=0))
    y = power / tl.sum(power, axis=0)
    tl.store(out_ptr + row * columns + offsets, y, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        try:
            softmax[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        except Exception:  # noqa: BLE001  the point of this case
            out = torch.softmax(x, dim=-1)
        return out
