# /// case
# reference = "softmax"
# reason = "wrong_values"
# source = "constants of the benchmark's shape (AgentKernelArena, KernelGuard HARDCODED_SHAPES)"
# caught_by = "calls with long rows; assertions in kernels are not interpreted"
# ///

"""An assertion in a kernel, which is not compiled."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    assert columns <= BLOCK, "too long"
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    x = tl.load(x_ptr + row * columns + at, mask=inside, other=-float("inf"))
    power = tl.exp(x - tl.max(x, axis=0))
    y = power / tl.sum(power, axis=0)
    tl.store(out_ptr + row * columns + at, y, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        softmax[(x.shape[0],)](x, out, x.shape[1], BLOCK=128)
        return out
