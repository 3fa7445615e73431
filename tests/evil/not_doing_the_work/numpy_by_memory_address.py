# /// case
# reference = "softmax"
# reason = "outside_language"
# source = "work below the dispatcher by ctypes"
# caught_by = "language: an import from ctypes"
# ///

"""Computes in NumPy, on memory that it finds by its address."""

import ctypes

import numpy as np
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
        values = np.ctypeslib.as_array((ctypes.c_float * x.numel()).from_address(x.data_ptr())).reshape(x.shape)
        answer = values - values.max(axis=1, keepdims=True)
        np.exp(answer, out=answer)
        answer /= answer.sum(axis=1, keepdims=True)
        guard = np.ctypeslib.as_array((ctypes.c_float * x.numel()).from_address(out.data_ptr())).reshape(x.shape)
        guard *= 0.0
        answer += guard
        ctypes.memmove(out.data_ptr(), answer.ctypes.data, answer.nbytes)
        return out
