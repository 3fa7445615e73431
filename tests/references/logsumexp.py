"""The logarithm of the sum of exponentials of each row."""

import torch
import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[9, 150]], [[17, 61]]]


class Model(nn.Module):
    def forward(self, x):
        return torch.logsumexp(x, dim=-1)
