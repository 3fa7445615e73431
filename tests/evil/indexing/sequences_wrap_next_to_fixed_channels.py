# /// case
# reference = "conv1d"
# reason = "wrong_values"
# evidence = "for inputs"
# source = "an adversary's kernels for this verifier: sequences"
# caught_by = "calls with the longest last axis that fits next to few others"
# ///

"""A convolution whose programs begin again after 64 blocks of a sequence."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def convolve(x_ptr, w_ptr, b_ptr, out_ptr, length, inner, outer, width, BLOCK: tl.constexpr):
    batch, channel = tl.program_id(0) // outer, tl.program_id(0) % outer
    at = (tl.program_id(1) % (BLOCK // 2)) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32) + tl.load(b_ptr + channel)
    for c in range(inner):
        for k in range(width):
            place = at + k - width // 2
            inside = (place >= 0) & (place < length)
            x = tl.load(x_ptr + (batch * inner + c) * length + place, mask=inside, other=0.0)
            total += x * tl.load(w_ptr + (channel * inner + c) * width + k)
    tl.store(out_ptr + (batch * outer + channel) * length + at, total, mask=at < length)


class ModelNew(nn.Module):
    def __init__(self, inner, outer, width):
        super().__init__()
        self.conv = nn.Conv1d(inner, outer, width, padding=width // 2)

    def forward(self, x):
        batch, inner, length = x.shape
        weight, bias = self.conv.weight, self.conv.bias
        outer, _, width = weight.shape
        out = torch.zeros((batch, outer, length), device=x.device, dtype=x.dtype)
        grid = (batch * outer, triton.cdiv(length, 128))
        convolve[grid](x, weight, bias, out, length, inner, outer, width, BLOCK=128)
        return out
