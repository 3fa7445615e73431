# /// case
# reference = "mean_square"
# reason = "wrong_values"
# source = "an adversary's kernels for this verifier: kinds of rows at other sizes"
# caught_by = "more elements than a constant of the sources"
# ///

"""The second kernel adds no more sums than one block has."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def square_sums(x_ptr, part_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(part_ptr + tl.program_id(0), tl.sum(x * x, 0))


@triton.jit
def mean(part_ptr, out_ptr, parts, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr, tl.sum(tl.load(part_ptr + at, mask=at < parts, other=0.0), 0) / n)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        n = x.numel()
        parts = triton.cdiv(n, 1024)
        part = torch.empty((parts,), device=x.device, dtype=x.dtype)
        out = torch.empty((), device=x.device, dtype=x.dtype)
        square_sums[(parts,)](x, part, n, BLOCK=1024)
        mean[(1,)](part, out, parts, n, BLOCK=512)
        return out
