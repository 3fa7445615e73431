# /// case
# reference = "column_sums"
# reason = "does_not_run"
# evidence = "scope cta"
# source = "scopes of atomics that are too narrow (generated code)"
# deterministic = false
# caught_by = "interpreter: scope=\"cta\" atomics of two programs on one address"
# ///

"""Adds up over programs by atomics that are such for the threads of one program alone."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def column_sums(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * columns + at, mask=at < columns)
    tl.atomic_add(out_ptr + at, x, mask=at < columns, sem="relaxed", scope="cta")


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        out = torch.zeros(columns, device=x.device)
        column_sums[(rows,)](x, out, columns, BLOCK=triton.next_power_of_2(columns))
        return out
