# /// case
# reference = "column_sums"
# shows = "a ticket by atomics: the last program adds the partial sums"
# ///

"""Programs write partial sums and draw a ticket; whoever draws the last one adds the partial sums up."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def column_sums(x_ptr, partial_ptr, ticket_ptr, out_ptr, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    part, parts = tl.program_id(0), tl.num_programs(0)
    row, column = part * ROWS + tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    inside = (row < rows)[:, None] & (column < columns)[None, :]
    x = tl.load(x_ptr + row[:, None] * columns + column[None, :], mask=inside, other=0.0)
    tl.store(partial_ptr + part * columns + column, tl.sum(x, axis=0), mask=column < columns)
    tl.debug_barrier()  # all threads have written before one of them draws the ticket
    if tl.atomic_add(ticket_ptr, 1, sem="acq_rel") == parts - 1:
        total = tl.zeros((COLUMNS,), dtype=tl.float32)
        for other in range(parts):
            at = partial_ptr + other * columns + column
            total += tl.load(at, mask=column < columns, other=0.0, cache_modifier=".cg")
        tl.store(out_ptr + column, total, mask=column < columns)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        parts = triton.cdiv(rows, 16)
        partial, out = x.new_empty((parts, columns)), x.new_empty((columns,))
        ticket = torch.zeros(1, dtype=torch.int32, device=x.device)
        width = triton.next_power_of_2(columns)
        column_sums[(parts,)](x, partial, ticket, out, rows, columns, ROWS=16, COLUMNS=width)
        return out
