"""The elements that are larger than a weight; 0 for the others."""

import torch
import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[64, 256]], [[49, 195]], [[81, 323]]]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.least = nn.Parameter(torch.tensor(0.5))

    def forward(self, x):
        return torch.where(x > self.least, x, 0.0)
