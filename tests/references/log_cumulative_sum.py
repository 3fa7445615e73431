"""Logarithms of running sums of exponentials."""

import torch
import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[6, 24]], [[17, 50]], [[40, 9]]]


class Model(nn.Module):
    def forward(self, x):
        return torch.logcumsumexp(x, dim=1)
