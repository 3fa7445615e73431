# /// case
# reference = "row_argmax"
# reason = "wrong_values"
# source = "an adversary's kernels for this verifier: numbers that are almost equal"
# caught_by = "trials: rows whose two largest numbers are almost equal"
# ///

"""It rounds away the last two bits of each number, as kernels do that put an index in their place."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=float("-inf"))
    whole = (x.to(tl.int32, bitcast=True) >> 2) << 2
    tl.store(out_ptr + row, tl.argmax(whole.to(tl.float32, bitcast=True), 0))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        out = torch.empty((rows,), device=x.device, dtype=torch.int64)
        kernel[(rows,)](x, out, columns, BLOCK=triton.next_power_of_2(columns))
        return out
