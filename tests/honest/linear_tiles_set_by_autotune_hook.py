# /// case
# reference = "linear_silu"
# shows = "host descriptors whose tiles a pre_hook sets, as in Triton's tutorials"
# ///

"""Descriptors of the host's, whose tiles a hook of each configuration sets, as Triton's tutorial has it."""

import torch.nn as nn
import triton
import triton.language as tl
from torch.amp import custom_fwd
from torch.autograd.function import Function, once_differentiable
from triton.tools.tensor_descriptor import TensorDescriptor


def set_tiles(given):
    given["x"].block_shape = [given["BM"], given["BK"]]
    given["weight"].block_shape = [given["BN"], given["BK"]]
    given["out"].block_shape = [given["BM"], given["BN"]]


TILES = [triton.Config({"BM": rows, "BN": 16, "BK": 16}, num_warps=4, pre_hook=set_tiles) for rows in (16, 32)]


@triton.autotune(configs=TILES, key=["M", "N", "K"])
@triton.jit
def linear_silu(x, weight, out, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        total = tl.dot(x.load([row, start]), weight.load([column, start]).T, total, input_precision="ieee")
    out.store([row, column], total * tl.sigmoid(total))


class LinearSilu(Function):
    @staticmethod
    @custom_fwd(device_type="cuda")
    def forward(ctx, x, weight):
        F, K = weight.shape
        M = x.shape[0]
        out = x.new_empty((M, F))
        described = (TensorDescriptor(tensor, tensor.shape, tensor.stride(), [1, 1]) for tensor in (x, weight, out))
        linear_silu[lambda meta: (triton.cdiv(M, meta["BM"]), triton.cdiv(F, meta["BN"]))](*described, M, F, K)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        raise NotImplementedError


class ModelNew(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.proj = nn.Linear(inner, outer, bias=False)

    def forward(self, x):
        K = x.shape[-1]
        return LinearSilu.apply(x.reshape(-1, K), self.proj.weight).view(*x.shape[:-1], -1)
