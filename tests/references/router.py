"""The experts with the largest shares of each row, and their shares."""

import torch
import torch.nn as nn

INIT_ARGS = "[2]"
WORKLOADS = [[[30, 8]], [[41, 12]]]


class Model(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.k = k

    def forward(self, x):
        return torch.topk(torch.softmax(x, -1), self.k, dim=-1)
