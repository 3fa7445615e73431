# /// case
# reference = "softmax"
# reason = "wrong_values"
# evidence = "configuration"
# source = "a configuration that only a tuner takes (KernelHacks' ghost branch)"
# caught_by = "every autotune configuration is interpreted"
# ///

"""The tenth of its configurations is wrong, and trials have but a few sizes."""

import torch
import torch.nn as nn
import triton
import triton.language as tl

CONFIGURATIONS = [
    triton.Config({"SCALE": 1}, num_warps=warps, num_stages=stages) for warps in (1, 2, 4) for stages in (1, 2, 3)
] + [triton.Config({"SCALE": 2}, num_warps=8)]


@triton.autotune(CONFIGURATIONS, key=["columns"])
@triton.jit
def softmax(x_ptr, out_ptr, columns, BLOCK: tl.constexpr, SCALE: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=float("-inf"))
    power = tl.exp(x - tl.max(x, axis=0))
    y = SCALE * power / tl.sum(power, axis=0)
    tl.store(out_ptr + row * columns + offsets, y, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        softmax[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
