"""Activations that PyTorch computes without a difference of nearly equal numbers."""

import torch
import torch.nn as nn
import torch.nn.functional as F

INIT_ARGS = "[0.7]"
WORKLOADS = [[[16, 100]], [[3, 5, 77]]]


class Model(nn.Module):
    def __init__(self, alpha):
        super().__init__()
        self.alpha = alpha

    def forward(self, x):
        return torch.tanh(x), F.elu(x, self.alpha), F.softplus(x), F.logsigmoid(x)
