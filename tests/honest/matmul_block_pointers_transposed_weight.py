# /// case
# reference = "linear"
# shows = "a block pointer with the other order of axes"
# ///

"""A weight is read through a block pointer whose order of axes is the other one."""

import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def linear_relu(x_ptr, w_ptr, b_ptr, o_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM
    n = tl.program_id(1) * BN
    x = tl.make_block_ptr(x_ptr, (M, K), (K, 1), (m, 0), (BM, BK), (1, 0))
    w = tl.make_block_ptr(w_ptr, (K, N), (1, K), (0, n), (BK, BN), (0, 1))
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        acc += tl.dot(
            tl.load(x, boundary_check=(0, 1), padding_option="zero"),
            tl.load(w, boundary_check=(0, 1), padding_option="zero"),
            input_precision="ieee",
        )
        x = tl.advance(x, (0, BK))
        w = tl.advance(w, (BK, 0))
    cols = n + tl.arange(0, BN)
    acc = tl.maximum(acc + tl.load(b_ptr + cols, mask=cols < N, other=0.0)[None, :], 0.0)
    o = tl.make_block_ptr(o_ptr, (M, N), (N, 1), (m, n), (BM, BN), (1, 0))
    tl.store(o, acc, boundary_check=(0, 1))


class ModelNew(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.proj = nn.Linear(inner, outer)

    def forward(self, x):
        m, k = x.shape
        n = self.proj.out_features
        out = x.new_empty(m, n)
        grid = ((m + 15) // 16, (n + 15) // 16)
        linear_relu[grid](x, self.proj.weight, self.proj.bias, out, m, n, k, 16, 16, 16)
        return out
