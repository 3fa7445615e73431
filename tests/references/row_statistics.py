"""Sums, maxima and places of minima of rows, and running sums of SiLU."""

import torch
import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[6, 24]], [[17, 50]], [[40, 9]]]


class Model(nn.Module):
    def forward(self, x):
        s = torch.sigmoid(x)
        return (x.sum(1), x.amax(1), x.argmin(1), (s * x).cumsum(1))
