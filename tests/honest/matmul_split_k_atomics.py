# /// case
# reference = "matmul"
# deterministic = false  # the order of the additions
# shows = "autotuned atomics into an output that is reset"
# ///

"""The inner dimension is split among programs, which add up in the output; autotuned, so it is reset before each."""

import torch
import torch.nn as nn
import triton
import triton.language as tl

CONFIGS = [triton.Config({"BK": 16, "SPLIT": 4}), triton.Config({"BK": 32, "SPLIT": 2}, num_warps=8)]


@triton.autotune(configs=CONFIGS, key=["M", "N", "K"], reset_to_zero=["out_ptr"])
@triton.jit
def matmul(a_ptr, b_ptr, out_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr):
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(tl.program_id(2) * BK, K, BK * SPLIT):
        inner = start + tl.arange(0, BK)
        a_at = row[:, None] * K + inner[None, :]
        a = tl.load(a_ptr + a_at, mask=(row[:, None] < M) & (inner[None, :] < K), other=0.0)
        b_at = inner[:, None] * N + column[None, :]
        b = tl.load(b_ptr + b_at, mask=(inner[:, None] < K) & (column[None, :] < N), other=0.0)
        total += tl.dot(a, b, input_precision="ieee")
    inside = (row[:, None] < M) & (column[None, :] < N)
    tl.atomic_add(out_ptr + row[:, None] * N + column[None, :], total, mask=inside)


class ModelNew(nn.Module):
    def forward(self, a, b):
        (M, K), N = a.shape, b.shape[1]
        out = torch.zeros((M, N), device=a.device, dtype=a.dtype)

        def grid(meta):
            return triton.cdiv(M, meta["BM"]), triton.cdiv(N, meta["BN"]), meta["SPLIT"]

        matmul[grid](a, b, out, M, N, K, BM=16, BN=16)
        return out
