"""The largest of each row after a tanh whose learned gain is limited."""

import torch
import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[13, 300]], [[35, 290]], [[64, 310]]]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(()))

    def forward(self, x):
        return torch.tanh(x * self.gain.clamp(0.1, 5.0)).amax(dim=-1)
