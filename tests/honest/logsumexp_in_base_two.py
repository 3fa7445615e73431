# /// case
# reference = "logsumexp"
# shows = "exponentials of base 2"
# ///

"""Exponentials of base 2, as flash attention has them; the maximum is scaled with them."""

import torch
import torch.nn as nn
import triton
import triton.language as tl

LOG2E = 1.4426950408889634
LN2 = 0.6931471805599453


@triton.heuristics(
    {"BLOCK": lambda args: triton.next_power_of_2(args["n"]), "num_warps": lambda args: 4 if args["n"] < 4096 else 8}
)
@triton.jit
def lse(x_ptr, out_ptr, n, scale, unscale, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=float("-inf")) * scale
    m = tl.max(x, 0)
    tl.store(out_ptr + row, (m + tl.log2(tl.sum(tl.exp2(x - m), 0))) * unscale)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[:-1], device=x.device)
        lse[(out.numel(),)](x, out, x.shape[-1], LOG2E, LN2)
        return out
