# /// case
# reference = "norms_and_relu"
# extern_ops = ["aten.native_batch_norm"]
# shows = "a mixed candidate whose layers of PyTorch decompose differently by mode"
# ///

"""A kernel behind layers of PyTorch, which are taken apart otherwise where nothing is recorded."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.maximum(x, 0.0), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.batch = nn.BatchNorm2d(channels)
        self.instance = nn.InstanceNorm2d(channels)

    def forward(self, x):
        x = self.instance(self.batch(x))
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
        return out
