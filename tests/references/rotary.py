"""Pairs of halves of queries and keys are rotated by an angle that grows with the position."""

import torch
import torch.nn as nn

INIT_ARGS = "[16, 64]"
WORKLOADS = [[[2, 3, 20, 16], [2, 1, 20, 16]], [[1, 2, 37, 16], [1, 2, 37, 16]]]


class Model(nn.Module):
    def __init__(self, size, length):
        super().__init__()
        frequency = 100.0 ** (-torch.arange(0, size, 2) / size)
        angle = torch.arange(length)[:, None] * frequency[None, :]
        self.register_buffer("cosine", angle.cos())
        self.register_buffer("sine", angle.sin())

    def turn(self, x):
        first, second = x.chunk(2, dim=-1)
        cosine, sine = self.cosine[: x.shape[-2]], self.sine[: x.shape[-2]]
        return torch.cat([first * cosine - second * sine, second * cosine + first * sine], dim=-1)

    def forward(self, q, k):
        return self.turn(q), self.turn(k)
