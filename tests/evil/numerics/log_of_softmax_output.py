# /// case
# reference = "log_softmax"
# reason = "wrong_values"
# evidence = "NaN or infinity"
# source = "unstable composition of stable parts"
# caught_by = "heavy-tailed and scaled inputs"
# ///

"""The logarithm of a softmax, which is 0 for most."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def log_softmax(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row, offsets = tl.program_id(0), tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=float("-inf"))
    power = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * columns + offsets, tl.log(power / tl.sum(power, axis=0)), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        log_softmax[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
