"""Batch norm, dropout of channels and ReLU."""

import torch.nn as nn
import torch.nn.functional as F

INIT_ARGS = "[6]"
WORKLOADS = [[[4, 6, 8, 8]], [[2, 6, 5, 11]], [[1, 6, 20, 3]]]


class Model(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.bn = nn.BatchNorm2d(c)
        self.drop = nn.Dropout2d(0.1)

    def forward(self, x):
        return F.relu(self.drop(self.bn(x)))
