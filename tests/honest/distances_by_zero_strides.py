# /// case
# reference = "pairwise_distance"
# shows = "a broadcast by strides of 0"
# ///

"""Broadcast by strides of 0, in the dtype that PyTorch would give."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def distances(a_ptr, b_ptr, out_ptr, columns, F, ai, aj, af, bi, bj, bf, BLOCK: tl.constexpr):
    i, j = tl.program_id(0) // columns, tl.program_id(0) % columns
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, F, BLOCK):
        f = start + tl.arange(0, BLOCK)
        a = tl.load(a_ptr + i * ai + j * aj + f * af, mask=f < F, other=0.0)
        b = tl.load(b_ptr + i * bi + j * bj + f * bf, mask=f < F, other=0.0)
        total += (a - b) * (a - b)
    tl.store(out_ptr + tl.program_id(0), tl.sum(total))


class ModelNew(nn.Module):
    def forward(self, a, b):
        shape = torch.broadcast_shapes(a.unsqueeze(1).shape, b.unsqueeze(0).shape)
        a, b = a.unsqueeze(1).expand(shape), b.unsqueeze(0).expand(shape)
        rows, columns, F = shape
        dtype = torch.promote_types(a.dtype, b.dtype)
        assert torch.can_cast(dtype, torch.float32)
        out = torch.empty((rows, columns), device=a.device, dtype=dtype)
        distances[(rows * columns,)](a, b, out, columns, F, *a.stride(), *b.stride(), BLOCK=16)
        return out
