# /// case
# reference = "steps_per_channel"
# reason = "wrong_values"
# evidence = "for inputs"
# source = "an adversary's kernels for this verifier: sizes"
# caught_by = "long axes next to fixed ones"
# ///

"""One block of 1,024 steps, where the channels are too many for much longer calls."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def norm(x_ptr, out_ptr, length, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    place = tl.program_id(0) * length + at
    x = tl.load(x_ptr + place, mask=at < length, other=0.0)
    d = tl.where(at < length, x - tl.sum(x, axis=0) / length, 0.0)
    tl.store(out_ptr + place, d * tl.rsqrt(tl.sum(d * d, axis=0) / length + 1e-5), mask=at < length)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        norm[(x.shape[0] * x.shape[1],)](x, out, x.shape[2], BLOCK=1024)
        return out
