"""A convolution of width 1, ReLU, and the input added again."""

import torch
import torch.nn as nn

INIT_ARGS = "[12]"
WORKLOADS = [[[2, 12, 5, 7]], [[3, 12, 9, 4]]]


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 1)

    def forward(self, x):
        return torch.relu(self.conv(x)) + x
