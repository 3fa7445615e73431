"""Normalised time series of 64 channels."""

import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[4, 64, 100]], [[3, 64, 90]]]


class Model(nn.Module):
    def forward(self, x):
        return nn.functional.instance_norm(x)
