# /// case
# reference = "swiglu_mlp"
# shows = "a tuner with many configurations, keys and pruning"
# ///

"""Gate and up in one kernel of two accumulators, tuned over many configurations."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


def configurations():
    return [
        triton.Config({"BM": bm, "BN": bn, "BK": 16}, num_warps=w, num_stages=s)
        for bm in (16, 32)
        for bn in (16, 32)
        for w in (2, 4)
        for s in (1, 3)
    ]


def prune(configs, named_args, **kwargs):
    return [config for config in configs if config.kwargs["BM"] * config.kwargs["BN"] <= 512]


@triton.autotune(configs=configurations(), key=["N", "K"], prune_configs_by={"early_config_prune": prune})
@triton.jit
def gate_up(x, wg, wu, h, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    g = tl.zeros((BM, BN), tl.float32)
    u = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        a = tl.load(x + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        w_mask = (n[None, :] < N) & (k[:, None] < K)
        g += tl.dot(a, tl.load(wg + n[None, :] * K + k[:, None], mask=w_mask, other=0.0), input_precision="ieee")
        u += tl.dot(a, tl.load(wu + n[None, :] * K + k[:, None], mask=w_mask, other=0.0), input_precision="ieee")
    y = g * tl.sigmoid(g) * u
    tl.store(h + m[:, None] * N + n[None, :], y, mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def down(h, w, y, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        a = tl.load(h + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(w + n[None, :] * K + k[:, None], mask=(n[None, :] < N) & (k[:, None] < K), other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    tl.store(y + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


class ModelNew(nn.Module):
    def __init__(self, size, hidden):
        super().__init__()
        self.gate = nn.Linear(size, hidden, bias=False)
        self.up = nn.Linear(size, hidden, bias=False)
        self.down = nn.Linear(hidden, size, bias=False)

    def forward(self, x):
        shape = x.shape
        x = x.reshape(-1, shape[-1])
        (m, k), n = x.shape, self.gate.out_features
        h = torch.empty((m, n), device=x.device)
        gate_up[lambda c: (triton.cdiv(m, c["BM"]), triton.cdiv(n, c["BN"]))](
            x, self.gate.weight, self.up.weight, h, m, n, k
        )
        y = torch.empty((m, k), device=x.device)
        down[(triton.cdiv(m, 16), triton.cdiv(k, 16))](h, self.down.weight, y, m, k, n, BM=16, BN=16, BK=16)
        return y.view(shape)
