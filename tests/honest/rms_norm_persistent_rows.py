# /// case
# reference = "add_rms_norm"
# shows = "few programs that go through many rows"
# ///

"""Few programs, each of which goes through many rows with the weight held in registers."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_rms_norm(
    x_ptr, residual_ptr, weight_ptr, out_ptr, total_ptr, rows, columns, eps,
    PROGRAMS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    column = tl.arange(0, BLOCK)
    inside = column < columns
    weight = tl.load(weight_ptr + column, mask=inside, other=0.0)
    for row in tl.range(tl.program_id(0), rows, PROGRAMS, num_stages=2):
        at = row * columns + column
        total = tl.load(x_ptr + at, mask=inside, other=0.0) + tl.load(residual_ptr + at, mask=inside, other=0.0)
        scale = tl.rsqrt(tl.sum(total * total) / columns + eps)
        tl.store(total_ptr + at, total, mask=inside)
        tl.store(out_ptr + at, total * scale * weight, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = nn.RMSNorm(size, eps=1e-6)

    def forward(self, x, residual):
        columns = x.shape[-1]
        rows = x.numel() // columns
        out, total = torch.empty_like(x), torch.empty_like(x)
        programs = min(4, rows)
        add_rms_norm[(programs,)](
            x, residual, self.norm.weight, out, total, rows, columns, 1e-6,
            PROGRAMS=programs, BLOCK=triton.next_power_of_2(columns),
        )  # fmt: skip
        return out, total
