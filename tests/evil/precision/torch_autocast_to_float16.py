# /// case
# reference = "linear_gelu"
# reason = "outside_language"
# source = "precision downgrade (Kevin; TritonBench)"
# extern_ops = ["aten.addmm", "aten.linear"]
# caught_by = "language: with torch.amp.autocast('cuda', dtype=torch.float16)"
# ///

"""Has PyTorch compute its part of the work in float16, which shows on a GPU alone."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gelu(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476)), mask=at < n)


class ModelNew(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.fc = nn.Linear(i, o)

    def forward(self, x):
        with torch.amp.autocast("cuda", dtype=torch.float16):
            y = self.fc(x)
        out = torch.empty(y.shape, device=x.device, dtype=x.dtype)
        gelu[(triton.cdiv(y.numel(), 256),)](y, out, y.numel(), BLOCK=256)
        return out
