"""Rows divided by their norm."""

import torch
import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[13, 21]], [[35, 9]], [[64, 3]]]


class Model(nn.Module):
    def forward(self, x):
        return x * torch.rsqrt(x.square().sum(dim=-1, keepdim=True) + 1e-6)
