"""Maxima of dilated windows in volumes."""

import torch.nn as nn

INIT_ARGS = "[3, 2, 1, 2]"
WORKLOADS = [[[2, 3, 9, 10, 11]], [[1, 2, 12, 7, 8]], [[3, 1, 8, 8, 8]]]


class Model(nn.Module):
    def __init__(self, k, s, p, d):
        super().__init__()
        self.pool = nn.MaxPool3d(k, s, p, d)

    def forward(self, x):
        return self.pool(x)
