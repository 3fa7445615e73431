"""Products of matrices in a batch, the second transposed."""

import torch
import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[3, 20, 40], [3, 30, 40]], [[2, 33, 17], [2, 16, 17]]]


class Model(nn.Module):
    def forward(self, a, b):
        return torch.bmm(a, b.transpose(1, 2))
