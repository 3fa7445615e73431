# /// case
# reference = "matmul"
# shows = "as many programs as processors"
# ///

"""As many programs as there are processors go through all tiles of the output."""

import torch.nn as nn
import triton
import triton.language as tl

PROCESSORS = 4


@triton.jit
def matmul(a_ptr, b_ptr, out_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    across = tl.cdiv(N, BN)
    for tile in range(tl.program_id(0), tl.cdiv(M, BM) * across, tl.num_programs(0)):
        row = (tile // across) * BM + tl.arange(0, BM)
        column = (tile % across) * BN + tl.arange(0, BN)
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for start in range(0, K, BK):
            inner = start + tl.arange(0, BK)
            a_at = row[:, None] * K + inner[None, :]
            a = tl.load(a_ptr + a_at, mask=(row[:, None] < M) & (inner[None, :] < K), other=0.0)
            b_at = inner[:, None] * N + column[None, :]
            b = tl.load(b_ptr + b_at, mask=(inner[:, None] < K) & (column[None, :] < N), other=0.0)
            total += tl.dot(a, b, input_precision="ieee")
        inside = (row[:, None] < M) & (column[None, :] < N)
        tl.store(out_ptr + row[:, None] * N + column[None, :], total, mask=inside)


class ModelNew(nn.Module):
    def forward(self, a, b):
        (M, K), N = a.shape, b.shape[1]
        out = a.new_empty((M, N))
        tiles = triton.cdiv(M, 16) * triton.cdiv(N, 32)
        matmul[(min(PROCESSORS, tiles),)](a, b, out, M, N, K, BM=16, BN=32, BK=32)
        return out
