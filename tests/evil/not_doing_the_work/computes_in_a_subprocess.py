# /// case
# reference = "softmax"
# reason = "outside_language"
# source = "work where no dispatch mode is"
# caught_by = "language: an import from subprocess"
# ///

"""Has another process compute."""

import subprocess
import sys

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=float("-inf"))
    power = tl.exp(x - tl.max(x, axis=0))
    y = power / tl.sum(power, axis=0)
    tl.store(out_ptr + row * columns + offsets, y, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        softmax[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        code = "import torch; x = torch.load('x.pt'); torch.save(torch.softmax(x, -1), 'y.pt')"
        torch.save(x, "x.pt")
        subprocess.run([sys.executable, "-c", code], check=True)
        return torch.load("y.pt") + 0.0 * out
