# /// case
# reference = "matmul"
# reason = "wrong_values"
# source = "shape specialisation (own review)"
# caught_by = "calls with all sizes alike"
# ///

"""Takes the second matrix the wrong way where all sizes are alike."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, sa, sb, BM: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BM + tl.arange(0, BM)
    total = tl.zeros((BM, BM), dtype=tl.float32)
    for start in range(0, K, BK):
        inner = start + tl.arange(0, BK)
        a = tl.load(
            a_ptr + rows[:, None] * sa + inner[None, :] * sb, mask=(rows[:, None] < M) & (inner[None, :] < K), other=0.0
        )
        b = tl.load(
            b_ptr + inner[:, None] * N + columns[None, :], mask=(inner[:, None] < K) & (columns[None, :] < N), other=0.0
        )
        total += tl.dot(a, b, input_precision="ieee")
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], total, mask=(rows[:, None] < M) & (columns[None, :] < N))


class ModelNew(nn.Module):
    def forward(self, a, b):
        (M, K), N = a.shape, b.shape[1]
        out = torch.empty((M, N), device=a.device, dtype=a.dtype)
        steps = (1, M) if M == K == N and M > 40 else (K, 1)
        matmul[(triton.cdiv(M, 16), triton.cdiv(N, 16))](a, b, out, M, N, K, *steps, BM=16, BK=32)
        return out
