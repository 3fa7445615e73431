# /// case
# reference = "swiglu_mlp"
# kernels = ["product", "silu_and_mul"]
# shows = "one autotuned kernel for products of several sizes"
# ///

"""One autotuned kernel for three products of other sizes, and one for the gate."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"BM": 16, "BN": 32, "BK": 16}, num_warps=2, num_stages=2),
        triton.Config({"BM": 32, "BN": 16, "BK": 32}, num_warps=4, num_stages=3),
    ],
    key=["M", "N", "K"],
)
@triton.jit
def product(x_ptr, w_ptr, out_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    x_block = tl.make_block_ptr(x_ptr, (M, K), (K, 1), (tl.program_id(0) * BM, 0), (BM, BK), (1, 0))
    w_block = tl.make_block_ptr(w_ptr, (K, N), (1, K), (0, tl.program_id(1) * BN), (BK, BN), (0, 1))
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, K, BK):
        x = tl.load(x_block, boundary_check=(0, 1), padding_option="zero")
        w = tl.load(w_block, boundary_check=(0, 1), padding_option="zero")
        total += tl.dot(x, w, input_precision="ieee")
        x_block = tl.advance(x_block, (0, BK))
        w_block = tl.advance(w_block, (BK, 0))
    out = tl.make_block_ptr(out_ptr, (M, N), (N, 1), (tl.program_id(0) * BM, tl.program_id(1) * BN), (BM, BN), (1, 0))
    tl.store(out, total, boundary_check=(0, 1))


@triton.jit
def silu_and_mul(gate_ptr, up_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    gate = tl.load(gate_ptr + at, mask=at < n, other=0.0)
    up = tl.load(up_ptr + at, mask=at < n, other=0.0)
    tl.store(gate_ptr + at, gate * tl.sigmoid(gate) * up, mask=at < n)


def matmul_t(x, weight):
    M, K = x.shape
    N = weight.shape[0]
    out = torch.empty(M, N, device=x.device, dtype=x.dtype)
    product[lambda meta: (triton.cdiv(M, meta["BM"]), triton.cdiv(N, meta["BN"]))](x, weight, out, M, N, K)
    return out


class ModelNew(nn.Module):
    def __init__(self, size, hidden):
        super().__init__()
        self.gate = nn.Linear(size, hidden, bias=False)
        self.up = nn.Linear(size, hidden, bias=False)
        self.down = nn.Linear(hidden, size, bias=False)

    def forward(self, x):
        flat = x.view(-1, x.shape[-1])
        gate, up = matmul_t(flat, self.gate.weight), matmul_t(flat, self.up.weight)
        n = gate.numel()
        silu_and_mul[(triton.cdiv(n, 256),)](gate, up, n, BLOCK=256)
        return matmul_t(gate, self.down.weight).view(x.shape)
