"""Three linear layers of the same size with residuals and a leaky activation."""

import torch.nn as nn
import torch.nn.functional as F

INIT_ARGS = "[24, 3]"
WORKLOADS = [[[30, 24]], [[17, 24]]]


class Model(nn.Module):
    def __init__(self, size, depth):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(size, size) for _ in range(depth))

    def forward(self, x):
        for layer in self.layers:
            x = x + F.leaky_relu(layer(x), 0.1)
        return x
