# /// case
# reference = "softmax"
# reason = "outside_language"
# source = "_make_subclass with a dispatch of its own (SOL-ExecBench)"
# caught_by = "language: a class of torch.Tensor"
# ///

"""A tensor subclass that computes when it is copied, behind the back of the census."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=float("-inf"))
    power = tl.exp(x - tl.max(x, axis=0))
    y = power / tl.sum(power, axis=0)
    tl.store(out_ptr + row * columns + offsets, y, mask=inside)


class Later(torch.Tensor):
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        x, out = args[0].question
        return torch.softmax(x, dim=-1) + 0.0 * out


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        softmax[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        later = torch.Tensor._make_subclass(Later, x)
        later.question = (x, out)
        return torch.clone(later)
