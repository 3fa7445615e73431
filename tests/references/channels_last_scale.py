"""Each pixel times a weight of its channel, the image laid out by pixels."""

import torch
import torch.nn as nn

INIT_ARGS = "[6]"
WORKLOADS = [[[3, 6, 5, 7]], [[2, 6, 11, 4]]]


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels, 1, 1))

    def forward(self, x):
        return (x * self.weight).permute(0, 2, 3, 1).contiguous()
