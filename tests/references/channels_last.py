"""Channels are moved to the last axis."""

import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[2, 9, 5, 7]], [[3, 20, 4, 3]]]


class Model(nn.Module):
    def forward(self, x):
        return x.permute(0, 2, 3, 1).contiguous()
