# /// case
# reference = "add_rms_norm"
# shows = "two outputs, one of which is the sum"
# ///

"""Adds, writes the sum, normalises what it holds; rows through a generator of programs."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def fused_add_rms(X, R, W, OUT, SUM, n_rows, n_cols, eps, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    w = tl.load(W + cols, mask=mask, other=0.0)
    for row in tl.range(tl.program_id(0), n_rows, tl.num_programs(0)):
        at = row * n_cols + cols
        s = tl.load(X + at, mask=mask, other=0.0) + tl.load(R + at, mask=mask, other=0.0)
        tl.store(SUM + at, s, mask=mask)
        inv = 1.0 / tl.sqrt(tl.sum(s * s, axis=0) / n_cols + eps)
        tl.store(OUT + at, s * inv * w, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = nn.RMSNorm(size, eps=1e-6)

    def forward(self, x, residual):
        n_cols = x.shape[-1]
        n_rows = x.numel() // n_cols
        out, total = torch.empty_like(x), torch.empty_like(x)
        programs = min(n_rows, torch.cuda.get_device_properties(x.device).multi_processor_count)
        fused_add_rms[(programs,)](
            x,
            residual,
            self.norm.weight,
            out,
            total,
            n_rows,
            n_cols,
            self.norm.eps,
            BLOCK=triton.next_power_of_2(n_cols),
        )
        return out, total
