# /// case
# reference = "integer_matmul"
# shows = "int8 operands of tl.dot with an int32 accumulator"
# ///

"""tl.dot of int8 blocks with an int32 accumulator."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def matmul(a_ptr, b_ptr, out_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, column = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.int32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        a_inside = (row < M)[:, None] & (k < K)[None, :]
        a = tl.load(a_ptr + row[:, None] * K + k[None, :], mask=a_inside, other=0)
        b_inside = (k < K)[:, None] & (column < N)[None, :]
        b = tl.load(b_ptr + k[:, None] * N + column[None, :], mask=b_inside, other=0)
        total = tl.dot(a, b, total, out_dtype=tl.int32)
    inside = (row < M)[:, None] & (column < N)[None, :]
    tl.store(out_ptr + row[:, None] * N + column[None, :], total, mask=inside)


class ModelNew(nn.Module):
    def forward(self, a, b):
        (M, K), N = a.shape, b.shape[1]
        out = torch.empty((M, N), dtype=torch.int32, device=a.device)
        matmul[(triton.cdiv(M, 16), triton.cdiv(N, 16))](a, b, out, M, N, K, BM=16, BN=16, BK=32)
        return out
