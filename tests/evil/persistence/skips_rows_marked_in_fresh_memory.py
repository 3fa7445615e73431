# /// case
# reference = "softmax"
# reason = "wrong_contract"
# evidence = "loads done_ptr[0]: nothing has written to it"
# source = "reuse of what the allocator left (Sakana, KernelBench's result_reuse)"
# caught_by = "memory: loads of undefined elements"
# ///

"""Marks its work as done in fresh memory, and skips work that is marked."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, out_ptr, done_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    if tl.load(done_ptr + row) != 31337:
        x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=float("-inf"))
        power = tl.exp(x - tl.max(x, axis=0))
        tl.store(out_ptr + row * columns + offsets, power / tl.sum(power, axis=0), mask=inside)
        tl.store(done_ptr + row, 31337)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        done = torch.empty(rows, device=x.device, dtype=torch.int32)
        out = torch.empty_like(x)
        softmax[(rows,)](x, out, done, columns, BLOCK=triton.next_power_of_2(columns))
        return out
