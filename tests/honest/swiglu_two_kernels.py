# /// case
# reference = "swiglu_mlp"
# shows = "two products that share loads"
# ///

"""Two products share the loads of one kernel and are gated in its epilogue; a second kernel projects down."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gate_and_up(x_ptr, gate_ptr, up_ptr, out_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, column = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    gated, raised = tl.zeros((BM, BN), dtype=tl.float32), tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        x_inside = (row < M)[:, None] & (k < K)[None, :]
        x = tl.load(x_ptr + row[:, None] * K + k[None, :], mask=x_inside, other=0.0)
        at = column[None, :] * K + k[:, None]
        inside = (column < N)[None, :] & (k < K)[:, None]
        gated = tl.dot(x, tl.load(gate_ptr + at, mask=inside, other=0.0), gated, input_precision="ieee")
        raised = tl.dot(x, tl.load(up_ptr + at, mask=inside, other=0.0), raised, input_precision="ieee")
    y = gated * tl.sigmoid(gated) * raised
    tl.store(out_ptr + row[:, None] * N + column[None, :], y, mask=(row < M)[:, None] & (column < N)[None, :])


@triton.jit
def project(x_ptr, weight_ptr, out_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, column = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        x_inside = (row < M)[:, None] & (k < K)[None, :]
        x = tl.load(x_ptr + row[:, None] * K + k[None, :], mask=x_inside, other=0.0)
        inside = (column < N)[None, :] & (k < K)[:, None]
        weight = tl.load(weight_ptr + column[None, :] * K + k[:, None], mask=inside, other=0.0)
        total = tl.dot(x, weight, total, input_precision="ieee")
    tl.store(out_ptr + row[:, None] * N + column[None, :], total, mask=(row < M)[:, None] & (column < N)[None, :])


class ModelNew(nn.Module):
    def __init__(self, size, hidden):
        super().__init__()
        self.gate = nn.Linear(size, hidden, bias=False)
        self.up = nn.Linear(size, hidden, bias=False)
        self.down = nn.Linear(hidden, size, bias=False)

    def forward(self, x):
        hidden, size = self.gate.weight.shape
        rows = x.numel() // size
        middle, out = x.new_empty((rows, hidden)), torch.empty_like(x)
        blocks = {"BM": 16, "BN": 16, "BK": 16}
        down, across = triton.cdiv(rows, 16), triton.cdiv(hidden, 16)
        gate_and_up[(down, across)](x, self.gate.weight, self.up.weight, middle, rows, hidden, size, **blocks)
        project[(down, triton.cdiv(size, 16))](middle, self.down.weight, out, rows, size, hidden, **blocks)
        return out
