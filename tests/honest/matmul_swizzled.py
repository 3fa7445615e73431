# /// case
# reference = "matmul"
# shows = "tl.swizzle2d"
# ///

"""tl.swizzle2d orders the programs of a two-dimensional grid."""

import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def matmul(a_ptr, b_ptr, out_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    down, across = tl.swizzle2d(tl.program_id(0), tl.program_id(1), tl.num_programs(0), tl.num_programs(1), 2)
    row = down * BM + tl.arange(0, BM)[:, None]
    column = across * BN + tl.arange(0, BN)[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in tl.range(0, K, BK, num_stages=2):
        inner = start + tl.arange(0, BK)
        a = tl.load(a_ptr + row * K + inner[None, :], mask=(row < M) & (inner[None, :] < K), other=0.0)
        b = tl.load(b_ptr + inner[:, None] * N + column, mask=(inner[:, None] < K) & (column < N), other=0.0)
        total = tl.dot(a, b, acc=total, input_precision="ieee")
    tl.store(out_ptr + row * N + column, total, mask=(row < M) & (column < N))


class ModelNew(nn.Module):
    def forward(self, a, b):
        (M, K), N = a.shape, b.shape[1]
        out = a.new_empty((M, N))
        matmul[(triton.cdiv(M, 16), triton.cdiv(N, 16))](a, b, out, M, N, K, BM=16, BN=16, BK=16)
        return out
