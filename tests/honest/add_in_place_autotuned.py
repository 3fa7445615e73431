# /// case
# reference = "add_in_place"
# shows = "an autotuned kernel that changes its input, restored between attempts"
# ///

"""Autotuned although it changes its input, which is restored after each attempt; unfit configurations are pruned."""

import torch.nn as nn
import triton
import triton.language as tl


def fitting(configs, named_args, **kwargs):
    return [c for c in configs if c.kwargs["BLOCK"] >= named_args["columns"]]


@triton.autotune(
    configs=[triton.Config({"BLOCK": size}, num_warps=1, num_stages=1) for size in (4, 8, 16, 32)],
    key=["columns"],
    prune_configs_by={"early_config_prune": fitting},
    restore_value=["x_ptr"],
)
@triton.jit
def add_to(x_ptr, y_ptr, columns, x_row, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    at = x_ptr + row * x_row + 2 * column
    y = tl.load(y_ptr + row * columns + column, mask=column < columns)
    tl.store(at, tl.load(at, mask=column < columns) + y, mask=column < columns)


class ModelNew(nn.Module):
    def forward(self, x, y):
        add_to[(x.shape[0],)](x, y, y.shape[1], x.stride(0))
        return x
