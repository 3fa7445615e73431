"""A matrix times a vector, which is a parameter."""

import torch
import torch.nn as nn

INIT_ARGS = "[90]"
WORKLOADS = [[[30, 90]], [[7, 90]]]


class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.vector = nn.Parameter(torch.randn(size))

    def forward(self, x):
        return x.mv(self.vector)
