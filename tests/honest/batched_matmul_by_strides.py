# /// case
# reference = "batched_matmul"
# shows = "a transposed view that is read by its strides"
# ///

"""A three-dimensional grid; the transposed view is read by its strides."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def bmm(
    a_ptr, b_ptr, out_ptr, M, N, K, a_batch, a_row, a_column, b_batch, b_row, b_column, out_batch, out_row, out_column,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    batch = tl.program_id(2).to(tl.int64)
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        inner = start + tl.arange(0, BK)
        a_at = batch * a_batch + row[:, None] * a_row + inner[None, :] * a_column
        a = tl.load(a_ptr + a_at, mask=(row[:, None] < M) & (inner[None, :] < K), other=0.0)
        b_at = batch * b_batch + inner[:, None] * b_row + column[None, :] * b_column
        b = tl.load(b_ptr + b_at, mask=(inner[:, None] < K) & (column[None, :] < N), other=0.0)
        total += tl.dot(a, b, input_precision="ieee", out_dtype=tl.float32)
    at = batch * out_batch + row[:, None] * out_row + column[None, :] * out_column
    tl.store(out_ptr + at, total, mask=(row[:, None] < M) & (column[None, :] < N))


class ModelNew(nn.Module):
    def forward(self, a, b):
        b = b.transpose(1, 2)
        (batch, M, K), N = a.shape, b.shape[2]
        out = torch.empty((batch, M, N), device=a.device, dtype=a.dtype)
        grid = (triton.cdiv(M, 16), triton.cdiv(N, 16), batch)
        bmm[grid](a, b, out, M, N, K, *a.stride(), *b.stride(), *out.stride(), BM=16, BN=16, BK=16)
        return out
