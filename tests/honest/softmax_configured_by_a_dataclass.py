# /// case
# reference = "softmax"
# shows = "launch settings in a dataclass"
# ///

"""What a launch needs is in a dataclass that a function makes."""

import dataclasses

import torch
import torch.nn as nn
import triton
import triton.language as tl

MAX_BLOCK = 4096


@dataclasses.dataclass(frozen=True)
class LaunchConfig:
    block: int
    warps: int = 4

    @classmethod
    def for_columns(cls, columns: int) -> "LaunchConfig":
        block = triton.next_power_of_2(columns)
        assert block <= MAX_BLOCK, "row too long"
        return cls(block, 8 if block >= 2048 else 4)


@triton.jit
def _softmax(X, Y, stride, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    idx = tl.arange(0, BLOCK)
    m = idx < n
    v = tl.load(X + pid * stride + idx, m, other=-float("inf")).to(tl.float32)
    v = v - tl.max(v, 0)
    e = tl.exp(v)
    tl.store(Y + pid * stride + idx, e / tl.sum(e, 0), m)


def softmax(x):
    shape = x.shape
    x = x.reshape(-1, shape[-1])
    if not x.is_contiguous():
        x = x.contiguous()
    y = torch.empty_like(x)
    config = LaunchConfig.for_columns(x.size(1))
    _softmax[(x.size(0),)](x, y, x.stride(0), x.size(1), BLOCK=config.block, num_warps=config.warps)
    return y.view(shape)


class ModelNew(nn.Module):
    def forward(self, x):
        return softmax(x)
