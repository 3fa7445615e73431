# /// case
# reference = "matmul"
# kernels = ["matmul_kernel"]
# deterministic = false
# shows = "a split along K that a heuristic decides"
# ///

"""Split along the inner dimension if that is long, added up by atomics into zeros."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.heuristics({"EVEN": lambda args: args["K"] % (args["BK"] * args["SPLIT"]) == 0})
@triton.jit
def matmul_kernel(
    A, B, C, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr, EVEN: tl.constexpr
):
    pid_m, pid_n, pid_k = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    rm = pid_m * BM + tl.arange(0, BM)
    rn = pid_n * BN + tl.arange(0, BN)
    rk = pid_k * BK + tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, tl.cdiv(K, BK * SPLIT)):
        if EVEN:
            a = tl.load(A + rm[:, None] * K + rk[None, :], mask=rm[:, None] < M, other=0.0)
            b = tl.load(B + rk[:, None] * N + rn[None, :], mask=rn[None, :] < N, other=0.0)
        else:
            a = tl.load(A + rm[:, None] * K + rk[None, :], mask=(rm[:, None] < M) & (rk[None, :] < K), other=0.0)
            b = tl.load(B + rk[:, None] * N + rn[None, :], mask=(rk[:, None] < K) & (rn[None, :] < N), other=0.0)
        acc += tl.dot(a, b, input_precision="ieee", out_dtype=tl.float32)
        rk += BK * SPLIT
    C_at = C + rm[:, None] * N + rn[None, :]
    mask = (rm[:, None] < M) & (rn[None, :] < N)
    if SPLIT == 1:
        tl.store(C_at, acc, mask=mask)
    else:
        tl.atomic_add(C_at, acc, mask=mask, sem="relaxed")


class ModelNew(nn.Module):
    def forward(self, a, b):
        (M, K), N = a.shape, b.shape[1]
        split = 4 if K >= 64 else 1
        c = torch.zeros((M, N), device=a.device, dtype=a.dtype)
        grid = (triton.cdiv(M, 32), triton.cdiv(N, 16), split)
        matmul_kernel[grid](a, b, c, M, N, K, BM=32, BN=16, BK=16, SPLIT=split)
        return c
