"""A bias by channel, then Hardswish, on images."""

import torch
import torch.nn as nn
import torch.nn.functional as F

INIT_ARGS = "[5]"
WORKLOADS = [[[3, 5, 6, 7]], [[2, 5, 11, 3]]]


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, x):
        return F.hardswish(x + self.bias[:, None, None])
