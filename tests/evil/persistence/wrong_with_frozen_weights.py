# /// case
# reference = "linear"
# reason = "outside_language"
# source = "honest in the check, other in the timing (GPU MODE super-batch, pygpubench warm-up)"
# caught_by = "language: the attribute requires_grad"
# ///

"""Wrong where its weights take no gradients, as those of a model that is not trained."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def linear_relu(
    x_ptr, weight_ptr, bias_ptr, out_ptr, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, WRONG: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        inner = start + tl.arange(0, BK)
        x_inside = (rows[:, None] < M) & (inner[None, :] < K)
        x = tl.load(x_ptr + rows[:, None] * K + inner[None, :], mask=x_inside, other=0.0)
        weight_inside = (columns[None, :] < N) & (inner[:, None] < K)
        weight = tl.load(weight_ptr + columns[None, :] * K + inner[:, None], mask=weight_inside, other=0.0)
        total += tl.dot(x, weight, input_precision="ieee")
    bias = tl.load(bias_ptr + columns, mask=columns < N, other=0.0)
    y = tl.maximum(total + bias[None, :], 0.0)
    if WRONG:
        y = 0.0 * y
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(out_ptr + rows[:, None] * N + columns[None, :], y, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.proj = nn.Linear(inner, outer)

    def forward(self, x):
        weight, bias = self.proj.weight, self.proj.bias
        M, K = x.shape
        wrong = not weight.requires_grad
        N = weight.shape[0]
        out = torch.empty((M, N), device=x.device, dtype=x.dtype)
        grid = (triton.cdiv(M, 16), triton.cdiv(N, 16))
        linear_relu[grid](x, weight, bias, out, M, N, K, BM=16, BN=16, BK=32, WRONG=wrong)
        return out
