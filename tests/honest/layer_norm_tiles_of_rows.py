# /// case
# reference = "layer_norm"
# kernels = ["layer_norm"]
# shows = "several rows in a program, by a heuristic"
# ///

"""Several rows a program, their number a heuristic of the size of the block."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.heuristics(
    values={
        "BLOCK": lambda args: triton.next_power_of_2(args["columns"]),
        "ROWS": lambda args: max(1, 256 // triton.next_power_of_2(args["columns"])),
        "num_warps": lambda args: 4 if args["columns"] <= 1024 else 8,
    }
)
@triton.jit
def layer_norm(x_ptr, weight_ptr, bias_ptr, out_ptr, rows, columns, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    inside = (row < rows)[:, None] & (column < columns)[None, :]
    at = row[:, None] * columns + column[None, :]
    x = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=1, keep_dims=True) / columns
    off = tl.where(inside, x - mean, 0.0)
    variance = tl.sum(off * off, axis=1, keep_dims=True) / columns
    weight = tl.load(weight_ptr + column, mask=column < columns, other=0.0, eviction_policy="evict_last")
    bias = tl.load(bias_ptr + column, mask=column < columns, other=0.0, eviction_policy="evict_last")
    y = off * tl.math.rsqrt(variance + eps) * weight[None, :] + bias[None, :]
    tl.store(out_ptr + at, y, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = nn.LayerNorm(size)

    def forward(self, x):
        flat = x.contiguous().flatten(0, -2)
        out = torch.empty_like(flat)

        def grid(meta):
            return (triton.cdiv(flat.shape[0], meta["ROWS"]),)

        norm = self.norm
        layer_norm[grid](flat, norm.weight, norm.bias, out, flat.shape[0], flat.shape[1], norm.eps)
        return out.unflatten(0, x.shape[:-1])
