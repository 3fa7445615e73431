"""What is on or under a diagonal of each matrix of a batch."""

import torch
import torch.nn as nn

INIT_ARGS = "[1]"
WORKLOADS = [[[3, 20, 30]], [[2, 33, 17]]]


class Model(nn.Module):
    def __init__(self, diagonal):
        super().__init__()
        self.diagonal = diagonal

    def forward(self, x):
        return torch.tril(x, self.diagonal)
