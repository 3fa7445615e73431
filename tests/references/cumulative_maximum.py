"""The largest element so far in each row, and where it is."""

import torch
import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[30, 50]], [[41, 23]]]


class Model(nn.Module):
    def forward(self, x):
        return torch.cummax(x, dim=-1)
