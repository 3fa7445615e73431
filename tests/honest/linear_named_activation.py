# /// case
# reference = "linear"
# shows = "an activation that is chosen by a string"
# ///

"""A string chooses the activation and a dtype the accumulator; TF32 is turned off in the old way."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def linear_kernel(
    a_ptr, b_ptr, bias_ptr, c_ptr, M, N, K, stride_am, stride_bn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    ACTIVATION: tl.constexpr, HAS_BIAS: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=ACC)
    for k in range(tl.cdiv(K, BLOCK_K)):
        offs_k = k * BLOCK_K + tl.arange(0, BLOCK_K)
        a_mask = (offs_m[:, None] < M) & (offs_k[None, :] < K)
        a = tl.load(a_ptr + offs_m[:, None] * stride_am + offs_k[None, :], mask=a_mask, other=0.0)
        b_mask = (offs_n[None, :] < N) & (offs_k[:, None] < K)
        b = tl.load(b_ptr + offs_n[None, :] * stride_bn + offs_k[:, None], mask=b_mask, other=0.0)
        acc += tl.dot(a, b, allow_tf32=False)
    if HAS_BIAS:
        acc += tl.load(bias_ptr + offs_n, mask=offs_n < N, other=0.0)[None, :]
    if ACTIVATION == "relu":
        acc = tl.where(acc > 0, acc, 0.0)
    elif ACTIVATION == "sigmoid":
        acc = tl.sigmoid(acc)
    c_mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], acc.to(c_ptr.dtype.element_ty), mask=c_mask)


class ModelNew(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.proj = nn.Linear(inner, outer)

    def forward(self, x):
        assert x.is_contiguous(), "rows are read with a stride of one"
        weight, bias = self.proj.weight, self.proj.bias
        (M, K), N = x.shape, weight.shape[0]
        out = torch.empty((M, N), device=x.device, dtype=x.dtype)
        linear_kernel[(triton.cdiv(M, 16), triton.cdiv(N, 16))](
            x, weight, bias, out, M, N, K, x.stride(0), weight.stride(0),
            BLOCK_M=16, BLOCK_N=16, BLOCK_K=16, ACTIVATION="relu", HAS_BIAS=bias is not None, ACC=tl.float32,
            num_warps=4,
        )  # fmt: skip
        return out
