# /// case
# reference = "gelu"
# kernels = ["add"]
# shows = "an activation function passed as a constexpr argument"
# ///

"""The function that a kernel calls is one of its constants, taken from a table; a layer has the name of a builtin."""

import math

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def identity(x):
    return x


@triton.jit
def gelu(x):
    return 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))


ACTIVATIONS = {"none": identity, "gelu": gelu}


@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, ACTIVATION: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    total = tl.load(x_ptr + at, mask=inside) + tl.load(y_ptr + at, mask=inside)
    tl.store(out_ptr + at, ACTIVATION(total), mask=inside)


class Sum(nn.Module):
    __constants__ = ["activation"]

    def __init__(self, activation):
        super().__init__()
        self.activation = activation

    def forward(self, x, y):
        out = torch.empty_like(x)
        n = math.prod(x.shape)
        add[(triton.cdiv(n, 128),)](x, y, out, n, ACTIVATION=ACTIVATIONS[self.activation], BLOCK=128)
        return out


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.sum = Sum("gelu")

    def forward(self, x, y):
        return self.sum(x, y)
