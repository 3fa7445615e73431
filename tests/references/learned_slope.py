"""A leaky ReLU with one learned slope."""

import torch
import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[13, 21]], [[5, 7, 9]], [[64, 3]]]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.slope = nn.Parameter(torch.full((), 0.25))

    def forward(self, x):
        return torch.where(x > 0, x, self.slope * x)
