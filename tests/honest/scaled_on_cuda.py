# /// case
# reference = "scaled_on_cuda"
# shows = "a reference that names the GPU"
# ///

"""The reference names the GPU, and so does this."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_of_twice(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, tl.maximum(2.0 * x, 0.0), mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.cuda().contiguous()
        out = torch.empty(x.shape, dtype=x.dtype, device="cuda")
        relu_of_twice[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
        return out
