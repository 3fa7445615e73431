# /// case
# reference = "linear"
# kernels = ["linear"]
# shows = "weights moved and made contiguous in forward"
# ///

"""Weights are moved and made contiguous in forward; a constant of the constructor is copied to the GPU in each call."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu(x):
    return tl.maximum(x, 0.0)


@triton.jit
def linear(
    x_ptr, w_ptr, b_ptr, limit_ptr, out_ptr, M, N, K,
    stride_xm, stride_xk, stride_wn, stride_wk, stride_om, stride_on,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    x_ptrs = x_ptr + rm[:, None] * stride_xm + rk[None, :] * stride_xk
    w_ptrs = w_ptr + rk[:, None] * stride_wk + rn[None, :] * stride_wn
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        x = tl.load(x_ptrs, mask=(rm[:, None] < M) & (rk[None, :] < K - k * BK), other=0.0)
        w = tl.load(w_ptrs, mask=(rk[:, None] < K - k * BK) & (rn[None, :] < N), other=0.0)
        total = tl.dot(x, w, acc=total, input_precision="ieee")
        x_ptrs += BK * stride_xk
        w_ptrs += BK * stride_wk
    total += tl.load(b_ptr + rn, mask=rn < N, other=0.0)[None, :]
    total = tl.minimum(relu(total), tl.load(limit_ptr))
    mask = (rm[:, None] < M) & (rn[None, :] < N)
    tl.store(out_ptr + stride_om * rm[:, None] + stride_on * rn[None, :], total, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.proj = nn.Linear(inner, outer)
        self.limit = torch.tensor([float("inf")])

    def forward(self, x):
        weight, bias = self.proj.weight.to(x.device).contiguous(), self.proj.bias.cuda()
        limit = self.limit.to(x.device, non_blocking=True)
        M, K = x.shape
        N = weight.shape[0]
        out = torch.empty((M, N), device=x.device, dtype=x.dtype)

        def grid(META):
            return (triton.cdiv(M, META["BM"]), triton.cdiv(N, META["BN"]))

        linear[grid](
            x, weight, bias, limit, out, M, N, K,
            x.stride(0), x.stride(1), weight.stride(0), weight.stride(1), out.stride(0), out.stride(1),
            BM=32, BN=32, BK=16, num_warps=4, num_stages=3,
        )  # fmt: skip
        return out
