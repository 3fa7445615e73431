# /// case
# reference = "low_rank"
# reason = "outside_language"
# source = "work moved out of forward"
# caught_by = "language: the attribute register_load_state_dict_post_hook"
# ///

"""Multiplies its weights in PyTorch when they are loaded, before anybody looks."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def product(x_ptr, weight_ptr, out_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        inner = start + tl.arange(0, BK)
        x = tl.load(
            x_ptr + rows[:, None] * K + inner[None, :], mask=(rows[:, None] < M) & (inner[None, :] < K), other=0.0
        )
        weight_inside = (inner[:, None] < K) & (columns[None, :] < N)
        weight = tl.load(weight_ptr + inner[:, None] * N + columns[None, :], mask=weight_inside, other=0.0)
        total += tl.dot(x, weight, input_precision="ieee")
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(out_ptr + rows[:, None] * N + columns[None, :], total, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, inner, rank, outer):
        super().__init__()
        self.down = nn.Parameter(torch.randn(inner, rank))
        self.up = nn.Parameter(torch.randn(rank, outer))
        self.fold(None)
        self.register_load_state_dict_post_hook(ModelNew.fold)

    def fold(self, _):
        self.folded = (self.down @ self.up).detach()

    def forward(self, x):
        (M, K), N = x.shape, self.up.shape[1]
        out = torch.empty((M, N), device=x.device, dtype=x.dtype)
        grid = (triton.cdiv(M, 16), triton.cdiv(N, 16))
        product[grid](x, self.folded, out, M, N, K, BM=16, BN=16, BK=16)
        return out
