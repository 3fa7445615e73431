"""Softmax of rows, and the input transposed, which shares its memory."""

import torch
import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[5, 33]], [[12, 70]]]


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, -1), x.transpose(0, 1)
