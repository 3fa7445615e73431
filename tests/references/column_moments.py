"""Variance and mean of each column."""

import torch
import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[30, 50]], [[71, 23]]]


class Model(nn.Module):
    def forward(self, x):
        return torch.var_mean(x, dim=0)
