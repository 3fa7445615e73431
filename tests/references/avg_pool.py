"""The mean of each window, padding counted."""

import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[2, 3, 37]], [[3, 4, 20]]]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = nn.AvgPool1d(3, stride=2, padding=1)

    def forward(self, x):
        return self.pool(x)
