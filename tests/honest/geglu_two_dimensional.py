# /// case
# reference = "geglu"
# shows = "halves of a row read by strides, with int64 offsets"
# ///

"""Both halves of a row are read by strides of the two-dimensional view; large offsets are int64."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def geglu(x_ptr, out_ptr, x_stride, out_stride, half, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < half
    value = tl.load(x_ptr + row * x_stride + column, mask=inside)
    gate = tl.load(x_ptr + row * x_stride + half + column, mask=inside)
    gate = gate * 0.5 * (1.0 + tl.math.erf(gate * 0.70710678))
    tl.store(out_ptr + row * out_stride + column, value * gate, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        half = x.shape[-1] // 2
        out = torch.empty((*x.shape[:-1], half), device=x.device, dtype=x.dtype)
        rows, flat = x.view(-1, 2 * half), out.view(-1, half)
        grid = (rows.shape[0], triton.cdiv(half, 16))
        geglu[grid](rows, flat, rows.stride(0), flat.stride(0), half, BLOCK=16)
        return out
