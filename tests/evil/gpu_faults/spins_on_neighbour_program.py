# /// case
# reference = "softmax"
# reason = ["timed_out", "does_not_run"]
# source = "a barrier over the grid without residence"
# caught_by = "deadline"
# ///

"""Each program waits until the next one is done, which may never have started."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, out_ptr, done_ptr, columns, BLOCK: tl.constexpr):
    row, offsets = tl.program_id(0), tl.arange(0, BLOCK)
    if row + 1 < tl.num_programs(0):
        while tl.atomic_add(done_ptr + row + 1, 0) == 0:
            pass
    inside = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=float("-inf"))
    power = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * columns + offsets, power / tl.sum(power, axis=0), mask=inside)
    tl.atomic_add(done_ptr + row, 1)


class ModelNew(nn.Module):
    def forward(self, x):
        out, done = torch.empty_like(x), torch.zeros((x.shape[0],), dtype=torch.int32, device=x.device)
        softmax[(x.shape[0],)](x, out, done, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
