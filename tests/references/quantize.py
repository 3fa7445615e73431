"""Numbers as bytes, relative to the largest of all, and the scale."""

import torch
import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[13, 21]], [[5, 7, 9]]]


class Model(nn.Module):
    def forward(self, x):
        scale = x.abs().max() / 127.0
        return torch.round(x / scale).to(torch.int8), scale
