# /// case
# reference = "row_sums"
# reason = "wrong_contract"
# evidence = "shares memory"
# source = "aliases among outputs not compared (KernelGuard)"
# caught_by = "aliases among outputs"
# ///

"""Two outputs that overlap in one buffer."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def both(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + offsets, mask=offsets < columns, other=0.0)
    tl.store(out_ptr + row, tl.sum(x, axis=0))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[0], device=x.device)
        both[(x.shape[0],)](x, out, x.shape[0], x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out, out
