# /// case
# reference = "gelu"
# kernels = ["add_gelu_fwd"]
# shows = "a helper that takes tensors of any rank"
# ///

"""Flat, over any shape, through a function of the file and a helper that is inlined."""

import torch
import torch.nn as nn
import triton
import triton.language as tl

SQRT_HALF = tl.constexpr(0.7071067811865476)


@triton.jit
def _gelu(v):
    return v * 0.5 * (1.0 + tl.erf(v * SQRT_HALF))


@triton.jit
def add_gelu_fwd(p, q, o, n_elements: tl.int64, BLOCK: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * BLOCK
    offs = base + tl.arange(0, BLOCK).to(tl.int64)
    keep = offs < n_elements
    a = tl.load(p + offs, mask=keep, cache_modifier=".cg")
    b = tl.load(q + offs, mask=keep, eviction_policy="evict_first")
    tl.store(o + offs, _gelu(a + b), mask=keep)


def fused(p: torch.Tensor, q: torch.Tensor, *, block: int = 128) -> torch.Tensor:
    p, q = torch.broadcast_tensors(p, q)
    p, q = p.contiguous(), q.contiguous()
    o = torch.empty(p.shape, dtype=p.dtype, device=p.device)
    n = p.numel()
    if n == 0:
        return o
    add_gelu_fwd[(-(-n // block),)](p, q, o, n, BLOCK=block)
    return o


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.GELU()

    def forward(self, x, y):
        return fused(x, y)
