"""Running sums of each row."""

import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[9, 150]], [[17, 61]]]


class Model(nn.Module):
    def forward(self, x):
        return x.cumsum(dim=-1)
