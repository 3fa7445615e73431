"""The nearest whole numbers."""

import torch
import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[13, 21]], [[5, 7, 9]], [[64, 3]]]


class Model(nn.Module):
    def forward(self, x):
        return torch.round(x)
