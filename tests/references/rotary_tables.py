"""Rotary embeddings from tables of cosines and sines."""

import torch
import torch.nn as nn

INIT_ARGS = "[16, 128]"
WORKLOADS = [[[2, 10, 4, 16]], [[1, 33, 2, 16]], [[3, 7, 1, 16]]]


class Model(nn.Module):
    def __init__(self, dim, max_len):
        super().__init__()
        inv = 1.0 / (10000 ** (torch.arange(0, dim, 2).float() / dim))
        t = torch.arange(max_len).float()
        freqs = torch.outer(t, inv)
        self.register_buffer("cos", freqs.cos(), persistent=False)
        self.register_buffer("sin", freqs.sin(), persistent=False)

    def forward(self, x):
        T = x.shape[1]
        cos, sin = self.cos[:T, None, :], self.sin[:T, None, :]
        x1, x2 = x.chunk(2, dim=-1)
        return torch.cat([x1 * cos - x2 * sin, x2 * cos + x1 * sin], dim=-1)
