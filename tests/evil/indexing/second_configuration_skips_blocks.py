# /// case
# reference = "row_largest"
# reason = "wrong_values"
# source = "an adversary's kernels for this verifier: what no call combined"
# caught_by = "every configuration at sizes that blocks divide"
# ///

"""One of two configurations reads every other block if blocks divide a row."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": 256}), triton.Config({"BLOCK": 64})], key=["columns"])
@triton.jit
def largest(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    peak = float("-inf")
    step = 2 * BLOCK if (columns % BLOCK == 0) & (columns > BLOCK) & (BLOCK < 128) else BLOCK
    for start in range(0, columns, step):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=float("-inf"))
        peak = tl.maximum(peak, tl.max(x, 0))
    tl.store(out_ptr + row, peak)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[:1], device=x.device, dtype=x.dtype)
        largest[(x.shape[0],)](x, out, x.shape[1])
        return out
