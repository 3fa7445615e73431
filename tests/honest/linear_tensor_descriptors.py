# /// case
# reference = "linear_silu"
# shows = "tensor descriptors that the kernel makes"
# ///

"""Tensor descriptors, made on the device, for loads and the store."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def linear_silu(x_ptr, weight_ptr, out_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    weight = tl.make_tensor_descriptor(weight_ptr, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    out = tl.make_tensor_descriptor(out_ptr, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        total += tl.dot(x.load([row, start]), weight.load([column, start]).T, input_precision="ieee")
    out.store([row, column], total * tl.sigmoid(total))


class ModelNew(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.proj = nn.Linear(inner, outer, bias=False)
        triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device="cuda"))

    def forward(self, x):
        weight = self.proj.weight
        (N, K), M = weight.shape, x.numel() // x.shape[-1]
        out = torch.empty((*x.shape[:-1], N), device=x.device, dtype=x.dtype)
        linear_silu[(triton.cdiv(M, 16), triton.cdiv(N, 16))](x, weight, out, M, N, K, BM=16, BN=16, BK=16)
        return out
