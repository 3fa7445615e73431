# /// case
# reference = "matmul"
# shows = "block pointers with boundary checks"
# ///

"""Block pointers with boundary checks, advanced along the inner dimension."""

import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def matmul(a_ptr, b_ptr, out_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    a = tl.make_block_ptr(a_ptr, shape=(M, K), strides=(K, 1), offsets=(row, 0), block_shape=(BM, BK), order=(1, 0))
    b = tl.make_block_ptr(b_ptr, shape=(K, N), strides=(N, 1), offsets=(0, column), block_shape=(BK, BN), order=(1, 0))
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, K, BK):
        left = tl.load(a, boundary_check=(0, 1), padding_option="zero")
        right = tl.load(b, boundary_check=(0, 1), padding_option="zero")
        total += tl.dot(left, right, input_precision="ieee")
        a = tl.advance(a, (0, BK))
        b = tl.advance(b, (BK, 0))
    out = tl.make_block_ptr(out_ptr, (M, N), (N, 1), (row, column), (BM, BN), (1, 0))
    tl.store(out, total, boundary_check=(0, 1))


class ModelNew(nn.Module):
    def forward(self, a, b):
        (M, K), N = a.shape, b.shape[1]
        out = a.new_empty((M, N))
        matmul[(triton.cdiv(M, 32), triton.cdiv(N, 16))](a, b, out, M, N, K, BM=32, BN=16, BK=32, num_stages=3)
        return out
