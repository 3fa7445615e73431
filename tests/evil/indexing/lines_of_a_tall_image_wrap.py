# /// case
# reference = "fading_rows"
# reason = "wrong_values"
# evidence = "for inputs"
# source = "an adversary's kernels for this verifier: images"
# caught_by = "calls with images of over a thousand lines and few columns"
# ///

"""Lines beyond eight blocks of 64 begin with the first again."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def fade(x_ptr, out_ptr, height, width, BLOCK: tl.constexpr):
    image, line = tl.program_id(0), tl.program_id(1) % (8 * BLOCK)
    first = (image * height + line) * width
    for start in range(0, width, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + first + at, mask=at < width)
        tl.store(out_ptr + first + at, x / (line + 1), mask=at < width)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.zeros_like(x)
        b, c, h, w = x.shape
        fade[(b * c, h)](x, out, h, w, BLOCK=64)
        return out
