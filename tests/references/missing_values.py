"""Doubled numbers, with missing ones as zeros."""

import torch
import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[13, 21]], [[5, 7, 9]], [[64, 3]]]


class Model(nn.Module):
    def forward(self, x0):
        return 2.0 * torch.where(torch.isnan(x0), 0.0, x0)
