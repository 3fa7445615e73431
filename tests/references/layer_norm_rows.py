"""Rows of any length, normalised."""

import torch.nn as nn
import torch.nn.functional as F

INIT_ARGS = "[]"
WORKLOADS = [[[30, 50]], [[41, 200]]]


class Model(nn.Module):
    def forward(self, x):
        return F.layer_norm(x, x.shape[-1:])
