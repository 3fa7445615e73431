"""The sum of each column."""

import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[90, 11]], [[50, 40]]]


class Model(nn.Module):
    def forward(self, x):
        return x.sum(0)
