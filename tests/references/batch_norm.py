"""Batch normalisation in eval mode: running statistics, scale and shift by channel."""

import torch.nn as nn

INIT_ARGS = "[6]"
WORKLOADS = [[[3, 6, 5, 7]], [[2, 6, 11, 4]]]


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        return self.norm(x)
