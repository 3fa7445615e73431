# /// case
# reference = "softmax"
# shows = "moves to devices where the tensors already are"
# ///

"""Moves its input to the GPU, where it is, and its output to the input's device, where it is."""

import torch
import torch.nn as nn
import triton
import triton.language as tl

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


@triton.jit
def softmax(x_ptr, out_ptr, x_row, out_row, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_row + at, mask=at < columns, other=-float("inf"))
    power = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + row * out_row + at, power / tl.sum(power, 0), mask=at < columns)


def triton_softmax(x: torch.Tensor) -> torch.Tensor:
    if not x.is_cuda:
        raise ValueError("not on the GPU")
    rows, columns = x.size(0), x.size(1)
    out = torch.zeros((rows, columns), device=torch.cuda.current_device(), dtype=torch.float32)

    def grid(meta):
        return (rows,)

    softmax[grid](x, out, x.stride(0), out.stride(0), columns, BLOCK=triton.next_power_of_2(columns))
    return out


class ModelNew(nn.Module):
    def forward(self, x):
        original = x.device
        return triton_softmax(x.cuda().to(device, dtype=torch.float32)).to(original)
