# /// case
# reference = "packed_swiglu"
# kernels = ["swiglu"]
# shows = "two views of one input"
# ///

"""Both halves are views of the input, with its stride; how many warps there are, and an import, is a custom."""

import torch
import torch.nn as nn
import triton
import triton.language as tl

try:
    from triton.language.extra.libdevice import exp
except ImportError:
    from triton.language.math import exp


def settings(n):
    block = triton.next_power_of_2(n)
    if block > 65536:
        raise RuntimeError(f"{n} is more than a block may have")
    return block, 16 if block >= 8192 else 8 if block >= 2048 else 4


@triton.jit
def silu(x):
    return x / (1 + exp(-x))


@triton.jit
def sigmoid(x):  # left from another version
    return 1 / (1 + exp(-x))


@triton.jit
def swiglu(gate_ptr, value_ptr, out_ptr, stride, columns: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    gate = tl.load(gate_ptr + row * stride + column, mask=inside, other=0).to(tl.float32)
    value = tl.load(value_ptr + row * stride + column, mask=inside, other=0)
    tl.store(out_ptr + row * columns + column, silu(gate).cast(value.dtype) * value, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        columns = x.shape[-1] // 2
        gate, value = x.chunk(2, dim=-1)
        out = torch.empty((*x.shape[:-1], columns), dtype=x.dtype, device=x.device)
        block, warps = settings(columns)
        swiglu[(out.numel() // columns,)](gate, value, out, x.shape[-1], columns=columns, BLOCK=block, num_warps=warps)
        return out
