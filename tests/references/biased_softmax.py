"""Softmax of scores with an additive mask."""

import torch
import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[30, 50], [30, 50]], [[41, 23], [41, 23]], [[17, 90], [17, 90]]]


class Model(nn.Module):
    def forward(self, x, mask):
        return torch.softmax(x + mask, dim=-1)
