# /// case
# reference = "huber"
# kernels = ["huber"]
# shows = "static and device assertions, and do_not_specialize"
# ///

"""Assertions at compile time and on the device, and a kernel that is not specialised on its count."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["count"], debug=True)
def huber(prediction_ptr, target_ptr, loss_ptr, slope_ptr, delta, count, BLOCK: tl.constexpr = 64):
    tl.static_assert(BLOCK >= 32, "a block is a warp at least")
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    tl.device_assert(at >= 0, "offsets are not negative")
    error = tl.load(prediction_ptr + at, mask=inside, other=0.0) - tl.load(target_ptr + at, mask=inside, other=0.0)
    clipped = tl.clamp(error, -delta, delta)
    tl.store(loss_ptr + at, clipped * (error - 0.5 * clipped), mask=inside)
    tl.store(slope_ptr + at, clipped, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, delta):
        super().__init__()
        self.delta = delta

    def forward(self, prediction, target):
        loss, slope = torch.empty_like(prediction), torch.empty_like(prediction)
        count = prediction.numel()
        huber[(triton.cdiv(count, 64), 1, 1)](prediction, target, loss, slope, self.delta, count)
        return {"loss": loss, "slope": slope}
