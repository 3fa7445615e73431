"""Exact GELU of two inputs' sum."""

import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[13, 21], [13, 21]], [[5, 7, 9], [5, 7, 9]]]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.GELU()

    def forward(self, x, y):
        return self.act(x + y)
