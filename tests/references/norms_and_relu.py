"""Two norms with the statistics of a training and of each image, and a ReLU."""

import torch
import torch.nn as nn

INIT_ARGS = "[8]"
WORKLOADS = [[[2, 8, 5, 7]], [[1, 8, 6, 6]]]


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.batch = nn.BatchNorm2d(channels)
        self.instance = nn.InstanceNorm2d(channels)

    def forward(self, x):
        return torch.relu(self.instance(self.batch(x)))
