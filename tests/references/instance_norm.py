"""Instance normalisation without parameters, of sequences of channels."""

import torch.nn as nn

INIT_ARGS = "[4]"
WORKLOADS = [[[3, 4, 37]], [[2, 4, 90]]]


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.InstanceNorm1d(channels)

    def forward(self, x):
        return self.norm(x)
