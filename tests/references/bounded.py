"""Bounds that few values are beyond."""

import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[13, 21]], [[5, 17]], [[9, 40]]]


class Model(nn.Module):
    def forward(self, x):
        return x.clamp(-1e6, 1e6) * 2
