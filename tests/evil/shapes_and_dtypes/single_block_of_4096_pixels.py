# /// case
# reference = "squeezed_channels"
# reason = "wrong_values"
# evidence = "for inputs"
# source = "an adversary's kernels for this verifier: sizes"
# caught_by = "calls with large images next to fixed channels"
# ///

"""One block of 4,096 pixels, whatever the image has."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def squeeze(x_ptr, weight_ptr, out_ptr, channels, pixels, BLOCK: tl.constexpr):
    plane = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + plane * pixels + at, mask=at < pixels, other=0.0)
    weight = tl.load(weight_ptr + plane % channels)
    tl.store(out_ptr + plane, tl.sum(x, axis=0) / pixels * weight)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(32))

    def forward(self, x):
        n, channels, height, width = x.shape
        out = torch.empty((n, channels), device=x.device, dtype=x.dtype)
        squeeze[(n * channels,)](x, self.weight, out, channels, height * width, BLOCK=4096)
        return out
