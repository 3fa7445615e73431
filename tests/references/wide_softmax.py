"""Softmax over the last axis, of rows that PyTorch would share between threads."""

import torch
import torch.nn as nn

INIT_ARGS = "[]"
WORKLOADS = [[[240, 400]], [[41, 900]], [[170, 233]]]


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)
