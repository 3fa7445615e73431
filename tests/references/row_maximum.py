"""The largest element of each row and where it is."""

import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[30, 50]], [[41, 23]]]


class Model(nn.Module):
    def forward(self, x):
        return x.max(dim=-1)
