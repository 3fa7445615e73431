"""Rows normalised, scaled and shifted."""

import torch.nn as nn

INIT_ARGS = "[50]"
WORKLOADS = [[[30, 50]], [[7, 11, 50]], [[64, 50]]]


class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = nn.LayerNorm(size)

    def forward(self, x):
        return self.norm(x)
