# /// case
# reference = "linear"
# shows = "sums of products in place of tl.dot"
# ///

"""A program for each output, no tl.dot: sums of products, in pieces of K."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gemv(x_ptr, w_ptr, b_ptr, y_ptr, N, K, BLOCK_K: tl.constexpr):
    m = tl.program_id(0)
    n = tl.program_id(1)
    k = tl.arange(0, BLOCK_K)
    acc = 0.0
    for start in range(0, K, BLOCK_K):
        inside = k + start < K
        x = tl.load(x_ptr + m * K + start + k, mask=inside, other=0.0)
        w = tl.load(w_ptr + n * K + start + k, mask=inside, other=0.0)
        acc += tl.sum(x * w, axis=0)
    acc += tl.load(b_ptr + n)
    tl.store(y_ptr + m * N + n, max(acc, 0.0))


class ModelNew(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.proj = nn.Linear(inner, outer)

    @torch.no_grad()
    def forward(self, x):
        weight, bias = self.proj.weight, self.proj.bias
        y = torch.empty((x.size(0), weight.size(0)), dtype=x.dtype, device=x.device)
        gemv[y.shape](x, weight, bias, y, y.size(1), x.size(1), BLOCK_K=32)
        return y
