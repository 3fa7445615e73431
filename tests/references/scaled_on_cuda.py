"""A ReLU of twice the input, on the GPU that it names."""

import torch
import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[30, 50]], [[17, 23]]]


class Model(nn.Module):
    def forward(self, x):
        twice = torch.full((x.shape[-1],), 2.0, device="cuda")
        return torch.relu(x.cuda() * twice)
