"""Products of complex numbers whose parts alternate."""

import torch
import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[13, 22], [13, 22]], [[5, 7, 8], [5, 7, 8]]]


class Model(nn.Module):
    def forward(self, x, y):
        a, b = x[..., ::2], x[..., 1::2]
        c, d = y[..., ::2], y[..., 1::2]
        return torch.stack([a * c - b * d, a * d + b * c], dim=-1).flatten(-2)
