"""Vectors along the channels of an image, scaled to length 1."""

import torch.nn as nn
import torch.nn.functional as F

INIT_ARGS = "[]"
WORKLOADS = [[[3, 6, 5, 7]], [[2, 11, 4, 3]]]


class Model(nn.Module):
    def forward(self, x):
        return F.normalize(x, dim=1)
