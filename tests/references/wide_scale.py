"""Long rows times weights; the number of columns is fixed."""

import torch
import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[5, 192]], [[7, 192]]]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(192))

    def forward(self, x):
        return x * self.weight
