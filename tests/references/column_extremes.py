"""The largest and the smallest of each column."""

import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[60, 24]], [[170, 50]], [[400, 9]]]


class Model(nn.Module):
    def forward(self, x):
        return x.amax(0), x.amin(0)
