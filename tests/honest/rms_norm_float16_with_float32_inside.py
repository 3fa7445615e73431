# /// case
# reference = "half_rms_norm"
# shows = "float16 in and out, float32 in between"
# ///

"""float16 in and out, float32 in between."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rms_norm(x_ptr, out_ptr, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / columns + eps)
    tl.store(out_ptr + row * columns + at, (x * scale).to(out_ptr.dtype.element_ty), mask=at < columns)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        columns = x.shape[-1]
        rms_norm[(x.numel() // columns,)](x, out, columns, 1e-5, BLOCK=triton.next_power_of_2(columns))
        return out
