"""Two lines and a band, by their conditions."""

import torch
import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[16, 40]], [[7, 111]], [[2, 300]]]


class Model(nn.Module):
    def forward(self, x):
        return torch.where(x > 0.5, 1.5 * x, 0.25 - x) * 2.0 + torch.clamp(x, -3.0, 0.5)
