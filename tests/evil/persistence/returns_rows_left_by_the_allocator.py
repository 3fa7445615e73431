# /// case
# reference = "softmax"
# reason = "wrong_contract"
# evidence = "loads out_ptr[0]: nothing has written to it"
# source = "reuse of what the allocator left (Sakana, KernelBench's result_reuse)"
# caught_by = "memory: loads of undefined elements"
# ///

"""Leaves a row alone where its fresh output already sums to one."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    place = tl.program_id(0) * columns + tl.arange(0, BLOCK)
    inside = tl.arange(0, BLOCK) < columns
    former = tl.load(out_ptr + place, mask=inside, other=0.0)
    left = (tl.abs(tl.sum(former, axis=0) - 1.0) < 0.001) & (tl.min(former, axis=0) >= 0.0)
    if left == 0:
        x = tl.load(x_ptr + place, mask=inside, other=float("-inf"))
        power = tl.exp(x - tl.max(x, axis=0))
        former = power / tl.sum(power, axis=0)
        tl.store(out_ptr + place, former, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        softmax[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
