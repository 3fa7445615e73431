# /// case
# reference = "activations"
# shows = "textbook formulas that cancel where the result is small"
# ///

"""Formulas that cancel where the result is small, as Triton's language has no expm1, log1p or tanh."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def tanh_kernel(x_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    e = tl.exp(-2.0 * tl.abs(x))
    t = (1.0 - e) / (1.0 + e)
    tl.store(out_ptr + offsets, tl.where(x >= 0, t, -t), mask=mask)


@triton.jit
def elu_kernel(x_ptr, out_ptr, n_elements, alpha, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.where(x > 0, x, alpha * (tl.exp(x) - 1.0)), mask=mask)


@triton.jit
def softplus_kernel(x_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.where(x > 20.0, x, tl.log(1.0 + tl.exp(x))), mask=mask)


@triton.jit
def log_sigmoid_kernel(x_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.minimum(x, 0.0) - tl.log(1.0 + tl.exp(-tl.abs(x))), mask=mask)


def apply(kernel, x, *args):
    out = torch.empty_like(x)
    n_elements = x.numel()
    kernel[lambda meta: (triton.cdiv(n_elements, meta["BLOCK_SIZE"]),)](x, out, n_elements, *args, BLOCK_SIZE=1024)
    return out


class ModelNew(nn.Module):
    def __init__(self, alpha):
        super().__init__()
        self.alpha = alpha

    def forward(self, x):
        x = x.contiguous()
        return (
            apply(tanh_kernel, x),
            apply(elu_kernel, x, self.alpha),
            apply(softplus_kernel, x),
            apply(log_sigmoid_kernel, x),
        )
