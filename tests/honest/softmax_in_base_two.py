# /// case
# reference = "softmax"
# kernels = ["softmax_kernel"]
# shows = "exponentials in base two of scaled values"
# ///

"""The values are scaled by the logarithm of e in base two, then exponentials and their sum are taken."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=float("-inf"))
    x = x * 1.44269504
    power = tl.exp2(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * columns + at, power / tl.sum(power, axis=0), mask=at < columns)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        out = torch.empty_like(x)
        softmax_kernel[(rows,)](x.contiguous(), out, columns, BLOCK=triton.next_power_of_2(columns))
        return out
