# /// case
# reference = "softmax"
# shows = "the device from Triton's driver at import, as in Triton's tutorials"
# ///

"""The device is asked of Triton's driver when the file is imported, as Triton's tutorials do it."""

import torch
import torch.nn as nn
import triton
import triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()


@triton.jit
def softmax(x_ptr, out_ptr, x_row, out_row, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_row + at, mask=at < columns, other=-float("inf"))
    power = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + row * out_row + at, power / tl.sum(power, 0), mask=at < columns)


class ModelNew(nn.Module):
    def forward(self, x):
        assert x.device == DEVICE
        out = torch.empty(x.shape, dtype=x.dtype, device=DEVICE)
        softmax[(x.shape[0],)](x, out, x.stride(0), out.stride(0), x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
