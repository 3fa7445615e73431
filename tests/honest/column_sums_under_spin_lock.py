# /// case
# reference = "column_sums"
# deterministic = false  # the order of the additions
# shows = "a spin lock by atomic_cas"
# ///

"""A spin lock, taken with atomic_cas, guards a buffer to which every program adds."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def column_sums(x_ptr, lock_ptr, out_ptr, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    inside = (row < rows)[:, None] & (column < columns)[None, :]
    x = tl.load(x_ptr + row[:, None] * columns + column[None, :], mask=inside, other=0.0)
    partial = tl.sum(x, axis=0)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.debug_barrier()
    total = tl.load(out_ptr + column, mask=column < columns, volatile=True)
    tl.store(out_ptr + column, total + partial, mask=column < columns)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        out = x.new_zeros((columns,))
        lock = torch.zeros(1, dtype=torch.int32, device=x.device)
        width = triton.next_power_of_2(columns)
        column_sums[(triton.cdiv(rows, 8),)](x, lock, out, rows, columns, ROWS=8, COLUMNS=width)
        return out
