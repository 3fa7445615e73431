"""Differences from running means."""

import torch
import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[13, 24]], [[35, 24]], [[5, 7, 24]]]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("running_mean", torch.zeros(24))

    def forward(self, x):
        return x - self.running_mean
