# /// case
# reference = "softmax"
# shows = "an allocation on \"cuda\", and a check of the input's device"
# ///

"""Allocates on the device that it names, and insists on inputs that are there."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, out_ptr, x_row, out_row, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_row + at, mask=at < columns, other=-float("inf"))
    power = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + row * out_row + at, power / tl.sum(power, 0), mask=at < columns)


class ModelNew(nn.Module):
    def forward(self, x):
        assert x.is_cuda and x.device.type == "cuda", "expects a tensor on the GPU"
        x = x.contiguous()
        out = torch.empty(x.shape, device="cuda", dtype=x.dtype)
        assert out.device == x.device
        block = triton.next_power_of_2(x.shape[1])
        num_warps = 8 if block >= 2048 else 4
        with torch.cuda.device(x.device):
            softmax[(x.shape[0],)](x, out, x.stride(0), out.stride(0), x.shape[1], BLOCK=block, num_warps=num_warps)
        return out
