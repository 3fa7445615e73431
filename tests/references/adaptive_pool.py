"""The image cut into a fixed number of windows of unequal sizes; the mean of each."""

import torch.nn as nn

INIT_ARGS = "[3]"
WORKLOADS = [[[1, 2, 7, 11]], [[1, 3, 10, 4]]]


class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(size)

    def forward(self, x):
        return self.pool(x)
