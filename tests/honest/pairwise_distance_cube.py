# /// case
# reference = "pairwise_distance"
# shows = "a three-dimensional block"
# ///

"""A three-dimensional block of differences is squared and reduced along its last axis."""

import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def distances(a_ptr, b_ptr, out_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    a = tl.load(a_ptr + row[:, None] * K + inner, mask=(row[:, None] < M) & (inner < K), other=0.0)
    b = tl.load(b_ptr + column[:, None] * K + inner, mask=(column[:, None] < N) & (inner < K), other=0.0)
    difference = a[:, None, :] - b[None, :, :]
    squared = tl.sum(difference * difference, axis=2)
    tl.store(out_ptr + row[:, None] * N + column, squared, mask=(row[:, None] < M) & (column < N))


class ModelNew(nn.Module):
    def forward(self, a, b):
        (M, K), N = a.shape, b.shape[0]
        out = a.new_empty((M, N))
        grid = (triton.cdiv(M, 8), triton.cdiv(N, 16))
        distances[grid](a, b, out, M, N, K, BM=8, BN=16, BK=triton.next_power_of_2(K))
        return out
