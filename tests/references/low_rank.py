"""A product with a matrix of low rank."""

import torch
import torch.nn as nn

INIT_ARGS = "[40, 5, 24]"
WORKLOADS = [[[30, 40]], [[17, 40]]]


class Model(nn.Module):
    def __init__(self, inner, rank, outer):
        super().__init__()
        self.down = nn.Parameter(torch.randn(inner, rank))
        self.up = nn.Parameter(torch.randn(rank, outer))

    def forward(self, x):
        return x @ (self.down @ self.up)
