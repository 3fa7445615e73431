"""The probability that no event of a row happens."""

import torch
import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[30, 50]], [[41, 23]], [[17, 90]]]


class Model(nn.Module):
    def forward(self, x):
        return (1 - torch.sigmoid(x - 6)).prod(dim=-1)
