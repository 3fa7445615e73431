"""Complex numbers from an absolute value and an angle."""

import torch
import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[13, 21], [13, 21]], [[5, 7, 9], [5, 7, 9]]]


class Model(nn.Module):
    def forward(self, length, angle):
        return torch.polar(length.abs(), angle)
