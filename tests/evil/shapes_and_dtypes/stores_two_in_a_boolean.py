# /// case
# reference = "any_and_all"
# reason = "wrong_contract"
# evidence = "neither true nor false"
# source = "output of another kind (own review)"
# caught_by = "contract: bytes of a boolean output are 0 or 1"
# ///

"""Stores a number where true or false is wanted: what PyTorch makes of another byte is nobody's promise."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, any_ptr, all_ptr, sum_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    x = tl.load(x_ptr + row * columns + at, mask=inside, other=-0.5)
    tl.store(any_ptr + row, tl.sum((x > 1.0).to(tl.int32), axis=0))
    tl.store(all_ptr + row, tl.min((x > -1.0).to(tl.int32), axis=0) > 0)
    tl.store(sum_ptr + row, tl.sum((x > 0.0).to(tl.int64), axis=0))


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        n = x.shape[-1]
        a = torch.empty(x.shape[:-1], dtype=torch.bool, device=x.device)
        b = torch.empty(x.shape[:-1], dtype=torch.bool, device=x.device)
        c = torch.empty(x.shape[:-1], dtype=torch.int64, device=x.device)
        k[(x.numel() // n,)](x, a, b, c, n, BLOCK=triton.next_power_of_2(n))
        return a, b, c
