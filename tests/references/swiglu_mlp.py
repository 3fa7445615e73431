"""A gated feed-forward network with SiLU."""

import torch.nn as nn
import torch.nn.functional as F

INIT_ARGS = "[24, 40]"
WORKLOADS = [[[30, 24]], [[3, 11, 24]]]


class Model(nn.Module):
    def __init__(self, size, hidden):
        super().__init__()
        self.gate = nn.Linear(size, hidden, bias=False)
        self.up = nn.Linear(size, hidden, bias=False)
        self.down = nn.Linear(hidden, size, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))
