# /// case
# reference = "softmax"
# reason = "wrong_contract"
# evidence = "strides"
# source = "strides not compared (KernelGYM)"
# caught_by = "strides of the outputs"
# ///

"""One element in memory for each row, looked at through strides of zero."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def fill(out_ptr, count, columns, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.full((BLOCK,), 1.0, tl.float32) / columns, mask=offsets < count)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty((x.shape[0], 1), device=x.device, dtype=x.dtype)
        fill[(triton.cdiv(x.shape[0], 64),)](out, x.shape[0], x.shape[1], BLOCK=64)
        return out.expand(x.shape)
