# /// case
# reference = "silu"
# reason = "wrong_values"
# evidence = "configuration 12"
# source = "an adversary's kernels for this verifier: tuners"
# caught_by = "every configuration of a tuner"
# ///

"""One of thirteen configurations has no mask."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(
    configs=[
        *(triton.Config({"BLOCK": 16 << (k % 6), "EVEN": False}, num_warps=1 + k // 6) for k in range(12)),
        triton.Config({"BLOCK": 1024, "EVEN": True}),
    ],
    key=["n"],
)
@triton.jit
def silu(x_ptr, out_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        x = tl.load(x_ptr + at)
        tl.store(out_ptr + at, x * tl.sigmoid(x))
    else:
        x = tl.load(x_ptr + at, mask=at < n)
        tl.store(out_ptr + at, x * tl.sigmoid(x), mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        silu[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
        return out
