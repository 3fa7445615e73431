"""A buffer counts its calls and keeps the last mean; both are state of the module."""

import torch
import torch.nn as nn

INIT_ARGS = "[6]"
WORKLOADS = [[[9, 6]], [[30, 6]]]


class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.calls += 1
        self.mean.mul_(0.9).add_(0.1 * x.mean(0))
        return x - self.mean
