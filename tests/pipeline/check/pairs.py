"""Modules in KernelBench's form, and kernels for them."""

from __future__ import annotations

SCALE = """
import torch
import torch.nn as nn

rows = 6
columns = 40


class Model(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(width))

    def forward(self, x):
        return torch.relu(x * self.scale)


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return [columns]
"""
KERNEL = """
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale_relu(x_ptr, scale_ptr, out_ptr, n, columns, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside)
    scale = tl.load(scale_ptr + at % columns, mask=inside)
    tl.store(out_ptr + at, tl.maximum(x * scale, 0.0), mask=inside)


class ModelNew(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(width))

    def forward(self, x):
        out = torch.empty_like(x)
        n = x.numel()
        scale_relu[(triton.cdiv(n, 128),)](x, self.scale, out, n, x.shape[-1], BLOCK=128)
        return out
"""
WRONG = KERNEL.replace("tl.maximum(x * scale, 0.0)", "x * scale")


def module(**changes: str) -> str:
    """`SCALE` with other text for `forward`, `get_inputs` or `imports`."""
    code = SCALE
    for old, new in (
        ("return torch.relu(x * self.scale)", changes.get("forward", "")),
        ("return [torch.randn(rows, columns)]", changes.get("get_inputs", "")),
        ("import torch\n", changes.get("imports", "")),
    ):
        code = code.replace(old, new, 1) if new else code
    return code


def kernel(forward: str) -> str:
    """`KERNEL` with statements before the first of `forward`."""
    return KERNEL.replace("        out = torch.empty_like(x)", f"        {forward}\n        out = torch.empty_like(x)")
