# /// case
# reference = "log_cumulative_sum"
# kernels = ["lcse"]
# shows = "a scan of pairs of maximum and scaled sum"
# ///

"""A scan over pairs of a maximum and the sum that it scales."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def combine(m1, s1, m2, s2):
    m = tl.maximum(m1, m2)
    return m, s1 * tl.exp(m1 - m) + s2 * tl.exp(m2 - m)


@triton.jit
def lcse(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + r * N + c, mask=c < N, other=-1e30)
    m, s = tl.associative_scan((x, tl.full(x.shape, 1.0, tl.float32)), 0, combine)
    tl.store(y_ptr + r * N + c, m + tl.log(s), mask=c < N)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        lcse[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
