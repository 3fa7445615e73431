"""Where a number stands: its sign, whether it is 0, and a step."""

import torch
import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[13, 21]], [[5, 7, 9]]]


class Model(nn.Module):
    def forward(self, x):
        return torch.sign(x), x == 0, torch.heaviside(x, torch.full_like(x, 0.5))
