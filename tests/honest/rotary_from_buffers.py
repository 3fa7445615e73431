# /// case
# reference = "rotary"
# shows = "tables in buffers, one launch for each output"
# ///

"""Tables in buffers, one kernel launched for each of two outputs, both halves written by one program."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rotate(x_ptr, cosine_ptr, sine_ptr, out_ptr, length, HALF: tl.constexpr):
    vector = tl.program_id(0)
    lane = tl.arange(0, HALF)
    table = vector % length * HALF + lane
    cosine, sine = tl.load(cosine_ptr + table), tl.load(sine_ptr + table)
    at = vector * 2 * HALF + lane
    first, second = tl.load(x_ptr + at), tl.load(x_ptr + at + HALF)
    tl.store(out_ptr + at, first * cosine - second * sine)
    tl.store(out_ptr + at + HALF, second * cosine + first * sine)


class ModelNew(nn.Module):
    def __init__(self, size, length):
        super().__init__()
        frequency = 100.0 ** (-torch.arange(0, size, 2) / size)
        angle = torch.arange(length)[:, None] * frequency[None, :]
        self.register_buffer("cosine", angle.cos())
        self.register_buffer("sine", angle.sin())

    def turn(self, x):
        out = torch.empty_like(x)
        size = x.shape[-1]
        rotate[(x.numel() // size,)](x, self.cosine, self.sine, out, x.shape[-2], HALF=size // 2)
        return out

    def forward(self, q, k):
        return self.turn(q), self.turn(k)
