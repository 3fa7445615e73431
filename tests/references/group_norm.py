"""Group normalisation of images."""

import torch.nn as nn

INIT_ARGS = "[3, 6]"
WORKLOADS = [[[3, 6, 5, 7]], [[2, 6, 11, 4]]]


class Model(nn.Module):
    def __init__(self, groups, channels):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)

    def forward(self, x):
        return self.norm(x)
