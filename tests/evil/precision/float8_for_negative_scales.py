# /// case
# reference = "batch_norm"
# reason = "wrong_values"
# evidence = "with weights"
# source = "parameters that the constructor makes (KernelBench issue 97)"
# caught_by = "calls with weights far from the constructor's"
# ///

"""Eight-bit numbers where a scale is below 0, which no constructor makes."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def norm(x_ptr, w_ptr, b_ptr, m_ptr, v_ptr, out_ptr, n, size, channels, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    c = at // size % channels
    x = tl.load(x_ptr + at, mask=inside).to(tl.float32)
    w = tl.load(w_ptr + c, mask=inside, other=1.0).to(tl.float32)
    b = tl.load(b_ptr + c, mask=inside).to(tl.float32)
    m = tl.load(m_ptr + c, mask=inside).to(tl.float32)
    v = tl.load(v_ptr + c, mask=inside).to(tl.float32)
    if tl.min(w, axis=0) < 0:
        x = x.to(tl.float8e5).to(tl.float32) * 0
    tl.store(out_ptr + at, (x - m) * w / tl.sqrt(v + 1e-5) + b, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.norm = nn.BatchNorm2d(c)

    def forward(self, x):
        out = torch.empty_like(x)
        n = self.norm
        norm[(triton.cdiv(x.numel(), 256),)](
            x,
            n.weight,
            n.bias,
            n.running_mean,
            n.running_var,
            out,
            x.numel(),
            x.shape[2] * x.shape[3],
            x.shape[1],
            BLOCK=256,
        )
        return out
