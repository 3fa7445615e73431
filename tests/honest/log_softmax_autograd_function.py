# /// case
# reference = "log_softmax"
# kernels = ["log_softmax_kernel"]
# shows = "an autograd.Function with cast decorators and a current device"
# ///

"""forward and backward of an autograd.Function, cast by decorators of torch.cuda.amp's kind, device made current."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def log_softmax_kernel(x_ptr, y_ptr, columns, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + at, mask=at < columns, other=float("-inf"))
    x = x - tl.max(x, axis=0)
    tl.store(y_ptr + row * columns + at, x - tl.log(tl.sum(tl.exp(x), axis=0)), mask=at < columns)


@triton.jit
def log_softmax_backward_kernel(y_ptr, dy_ptr, dx_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    y = tl.load(y_ptr + row * columns + at, mask=at < columns, other=float("-inf"))
    dy = tl.load(dy_ptr + row * columns + at, mask=at < columns, other=0.0)
    tl.store(dx_ptr + row * columns + at, dy - tl.exp(y) * tl.sum(dy, axis=0), mask=at < columns)


class LogSoftmax(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda")
    def forward(ctx, x):
        y = torch.empty(x.shape, device=x.device, dtype=x.dtype)
        with torch.cuda.device_of(x):
            log_softmax_kernel[(x.shape[0],)](x, y, x.shape[1], x.stride(0), BLOCK=triton.next_power_of_2(x.shape[1]))
        ctx.save_for_backward(y)
        return y

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx, dy):
        (y,) = ctx.saved_tensors
        dx = torch.empty_like(y)
        block = triton.next_power_of_2(y.shape[1])
        log_softmax_backward_kernel[(y.shape[0],)](y, dy.contiguous(), dx, y.shape[1], BLOCK=block)
        return dx


class ModelNew(nn.Module):
    def forward(self, x):
        return LogSoftmax.apply(x)
