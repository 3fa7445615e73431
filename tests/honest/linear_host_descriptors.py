# /// case
# reference = "linear_silu"
# shows = "tensor descriptors that the host makes"
# ///

"""Tensor descriptors that the host makes, one of them over a flattened view."""

import torch.nn as nn
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def linear_silu(x, weight, out, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        total += tl.dot(x.load([row, start]), weight.load([column, start]).T, input_precision="ieee")
    out.store([row, column], total * tl.sigmoid(total))


class ModelNew(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.proj = nn.Linear(inner, outer, bias=False)

    def forward(self, x):
        weight = self.proj.weight
        N, K = weight.shape
        rows = x.view(-1, K)
        out = x.new_empty((rows.shape[0], N))
        grid = (triton.cdiv(rows.shape[0], 16), triton.cdiv(N, 16))
        described = (TensorDescriptor.from_tensor(tensor, [16, 16]) for tensor in (rows, weight, out))
        linear_silu[grid](*described, K, BM=16, BN=16, BK=16)
        return out.view(*x.shape[:-1], N)
