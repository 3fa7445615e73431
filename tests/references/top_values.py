"""The largest values of each row and where they are."""

import torch
import torch.nn as nn

INIT_ARGS = "[3]"
WORKLOADS = [[[30, 50]], [[41, 23]]]


class Model(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.k = k

    def forward(self, x):
        return torch.topk(x, self.k, dim=-1)
