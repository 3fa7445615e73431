"""The weighted mean of each channel of images."""

import torch
import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[4, 32, 28, 28]], [[3, 32, 23, 23]], [[5, 32, 37, 37]]]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(32))

    def forward(self, x):
        return x.mean(dim=(2, 3)) * self.weight
