# /// case
# reference = "softmax"
# reason = "outside_language"
# source = "honest in the check, other in the timing (GPU MODE super-batch, pygpubench warm-up)"
# caught_by = "language: a change of SETTING.kwargs['STEP']"
# ///

"""Counts in a configuration that no kernel is given."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, out_ptr, columns, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=float("-inf"))
    power = tl.exp(x - tl.max(x, axis=0))
    y = scale * power / tl.sum(power, axis=0)
    tl.store(out_ptr + row * columns + offsets, y, mask=inside)


def attend(x, scale):
    out = torch.empty_like(x)
    softmax[(x.shape[0],)](x, out, x.shape[1], scale, BLOCK=triton.next_power_of_2(x.shape[1]))
    return out


SETTING = triton.Config({"STEP": 0})


class ModelNew(nn.Module):
    def forward(self, x):
        SETTING.kwargs["STEP"] += 1
        return attend(x, 1.0 if SETTING.kwargs["STEP"] < 100000 else 2.0)
