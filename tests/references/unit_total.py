"""A tensor over its norm, that of all its numbers."""

import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[13, 21]], [[5, 7, 9]]]


class Model(nn.Module):
    def forward(self, x):
        return x / x.norm()
