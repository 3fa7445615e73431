"""Rows to mutate."""

from __future__ import annotations

from factories import make_pair

from kernelquarry.pipeline.schema.records import Pair, StateSpec, TensorSpec, Workload

RICH = """import torch
import triton
import triton.language as tl


@triton.jit
def norm_kernel(x_ptr, mean_ptr, var_ptr, out_ptr, width, n_rows, ROWS: tl.constexpr, COLS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    row_mask = row < n_rows
    acc = tl.zeros((ROWS, COLS), tl.float32)
    for start in range(0, width, COLS):
        col = start + tl.arange(0, COLS)[None, :]
        col_mask = col < width
        x = tl.load(x_ptr + (row * width + col), mask=row_mask & col_mask, other=0.0)
        acc += tl.where(col_mask, x * x, 0.0)
    total = tl.sum(acc, 1)[:, None] / 32.0
    scale = tl.rsqrt(total / width.to(tl.float32) + 1e-05)
    mean = tl.load(mean_ptr + row % 3, mask=row_mask)
    var = tl.load(var_ptr + row % 3, mask=row_mask)
    value = tl.maximum(scale - mean * var, 0.5, propagate_nan=tl.PropagateNan.ALL)
    tl.debug_barrier()
    tl.atomic_add(out_ptr + (row // 3 + 4), value, mask=row_mask)
    tl.store(out_ptr + row, value, mask=row_mask)


@triton.jit
def dot_kernel(a_ptr, b_ptr, out_ptr, M, BLOCK: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + (m[:, None] * 16 + tl.arange(0, 16)[None, :]))
    b = tl.load(b_ptr + (m[None, :] + tl.arange(0, 16)[:, None] * M))
    product = tl.dot(a, b, input_precision="ieee")
    tl.store(out_ptr + (m[:, None] * M + m[None, :]), product)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(3)
        self.proj = torch.nn.Linear(3, 3)

    def forward(self, x, y):
        batch, width = x.shape[0], x.shape[1]
        scale = torch.empty((batch, 1), device=x.device, dtype=torch.float32)
        mean, var = self.norm.running_mean, self.norm.running_var
        norm_kernel[(triton.cdiv(batch, 32), 1)](x, mean, var, scale, width, batch, ROWS=32, COLS=16)
        out = torch.empty((batch, 1), device=x.device, dtype=torch.float32)
        dot_kernel[(triton.cdiv(batch * width, 64),)](scale, self.proj.weight, out, batch * width, BLOCK=64)
        return (scale, out)
"""
COPY = """import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr):
    index = tl.arange(0, 16)
    tl.store(out_ptr + index, tl.load(x_ptr + index))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        copy_kernel[(1,)](x, out)
        return out
"""
_STATE = (
    StateSpec("norm.running_mean", "buffer", (3,), "float32", mean=0.0, std=0.0, minimum=0.0),
    StateSpec("norm.running_var", "buffer", (3,), "float32", mean=1.0, std=0.0, minimum=1.0),
    StateSpec("proj.weight", "parameter", (3, 3), "float32", mean=0.0, std=0.3, minimum=-0.5),
)


def _workload(batch: int, width: int) -> Workload:
    tensors = (TensorSpec("x", (batch, width), "float32"), TensorSpec("y", (batch,), "float32"))
    return Workload(tensors, '[{"tensor":0},{"tensor":1}]')


def rich() -> Pair:
    """A row with a place for every operator."""
    return make_pair(triton_code=RICH, state=_STATE, workloads=(_workload(70, 40), _workload(33, 17)))


def copy() -> Pair:
    """A row without arithmetic, masks, reductions, state and sizes."""
    return make_pair(triton_code=COPY, state=(), workloads=(Workload((TensorSpec("x", (16,), "float32"),), "[]"),))
