# /// case
# reference = "linear_silu"
# kernels = ["linear"]
# shows = "heuristics that leave out masks, and an activation as a constant"
# ///

"""Heuristics decide whether the inner dimension needs a mask; the activation is a constant function."""

import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def silu(x):
    return x * tl.sigmoid(x)


@triton.heuristics({"EVEN_K": lambda args: args["K"] % args["BK"] == 0})
@triton.jit
def linear(
    x_ptr, weight_ptr, out_ptr, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, EVEN_K: tl.constexpr, ACTIVATION: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    x_ptrs = x_ptr + row[:, None] * K + inner[None, :]
    weight_ptrs = weight_ptr + column[None, :] * K + inner[:, None]
    x_rows, weight_columns = row[:, None] < M, column[None, :] < N
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        if EVEN_K:
            x = tl.load(x_ptrs, mask=x_rows, other=0.0)
            weight = tl.load(weight_ptrs, mask=weight_columns, other=0.0)
        else:
            x = tl.load(x_ptrs, mask=x_rows & (inner[None, :] < K - start), other=0.0)
            weight = tl.load(weight_ptrs, mask=weight_columns & (inner[:, None] < K - start), other=0.0)
        total = tl.dot(x, weight, total, input_precision="ieee")
        x_ptrs += BK
        weight_ptrs += BK
    if ACTIVATION is not None:
        total = ACTIVATION(total)
    tl.store(out_ptr + row[:, None] * N + column[None, :], total, mask=x_rows & weight_columns)


class ModelNew(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.proj = nn.Linear(inner, outer, bias=False)

    def forward(self, x):
        weight = self.proj.weight
        (N, K), M = weight.shape, x.numel() // x.shape[-1]
        out = x.new_empty((*x.shape[:-1], N))
        grid = (triton.cdiv(M, 32), triton.cdiv(N, 16))
        linear[grid](x, weight, out, M, N, K, BM=32, BN=16, BK=16, ACTIVATION=silu)
        return out
