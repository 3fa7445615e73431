"""A polynomial whose coefficients are parameters."""

import torch
import torch.nn as nn

INIT_ARGS = "[5]"
WORKLOADS = [[[13, 21]], [[90]]]


class Model(nn.Module):
    def __init__(self, terms):
        super().__init__()
        self.coefficients = nn.Parameter(torch.linspace(-1.0, 1.0, terms))

    def forward(self, x):
        y = torch.tanh(x)
        return sum(c * y**power for power, c in enumerate(self.coefficients))
