"""A running mean in a buffer is moved towards the mean of each call, and taken off the input."""

import torch
import torch.nn as nn

INIT_ARGS = "[11, 0.25]"
WORKLOADS = [[[30, 11]], [[17, 11]]]


class Model(nn.Module):
    def __init__(self, size, rate):
        super().__init__()
        self.rate = rate
        self.register_buffer("running_mean", torch.zeros(size))

    def forward(self, x):
        self.running_mean.lerp_(x.mean(0), self.rate)
        return x - self.running_mean
