# /// case
# reference = "matmul"
# shows = "a configuration without room on the smaller targets"
# ///

"""The first configuration of its tuner has no room on the smaller of the targets."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(
    [
        triton.Config({"BLOCK": 64, "DEPTH": 64}, num_stages=5),
        triton.Config({"BLOCK": 32, "DEPTH": 32}, num_stages=2),
    ],
    key=["M", "N", "K"],
)
@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK: tl.constexpr, DEPTH: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, K, DEPTH):
        inner = start + tl.arange(0, DEPTH)
        a_inside = (rows[:, None] < M) & (inner[None, :] < K)
        a = tl.load(a_ptr + rows[:, None] * K + inner[None, :], mask=a_inside, other=0.0)
        b_inside = (inner[:, None] < K) & (columns[None, :] < N)
        b = tl.load(b_ptr + inner[:, None] * N + columns[None, :], mask=b_inside, other=0.0)
        total = tl.dot(a, b, total, input_precision="ieee")
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], total, mask=inside)


class ModelNew(nn.Module):
    def forward(self, a, b):
        M, K = a.shape
        N = b.shape[1]
        out = torch.empty((M, N), device=a.device)

        def grid(meta):
            return triton.cdiv(M, meta["BLOCK"]), triton.cdiv(N, meta["BLOCK"])

        matmul[grid](a, b, out, M, N, K)
        return out
